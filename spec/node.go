// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package spec

// Role says what a node is in the cluster.
type Role string

const (
	// ControlPlane nodes run etcd and the Kubernetes control plane.
	ControlPlane Role = "controlplane"
	// Worker nodes run workloads only.
	Worker Role = "worker"
)

// Node holds everything that can be said about one node. The same fields stand in the defaults, in a
// size, in a pool and at the node itself; the most specific one that is set wins, maps key by key.
type Node struct {
	// Role is what the node is in the cluster.
	Role *Role `json:"role,omitempty" enum:"controlplane,worker"`
	// Host is the Proxmox VE host (node name in Proxmox) that runs the VM.
	Host *string `json:"host,omitempty"`
	// VMID is the VM's id, unique in the Proxmox cluster.
	VMID *int `json:"vmId,omitempty" min:"100" max:"999999999"`
	// Size names an entry of sizes that gives defaults for cpu, memory and disks.
	Size *string `json:"size,omitempty"`
	// Image names the image variant (an entry of images) the node boots; the default image when unset.
	Image *string `json:"image,omitempty"`
	// Zone is the node's topology.kubernetes.io/zone; defaults to the host's zone.
	Zone *string `json:"zone,omitempty"`
	// AllowSharedHost permits a second control plane on a host although another host is free.
	AllowSharedHost *bool `json:"allowSharedHost,omitempty" default:"false"`

	VM `json:",inline"`

	// Networks are the network devices, by name, ordered by Index and then by name; the first is
	// net0, whose address is the node's address.
	Networks map[string]Network `json:"networks,omitempty"`
	// OSDisk is the disk that Talos is installed on.
	OSDisk *Disk `json:"osDisk,omitempty"`
	// Disks are the data disks, by name.
	Disks map[string]Disk `json:"disks,omitempty"`

	NodeConfig `json:",inline"`
}

// NodeConfig holds what the Talos configuration of one node says beyond its cluster's.
type NodeConfig struct {
	// Hostname is the node's name in Talos and Kubernetes; defaults to the node's name.
	Hostname *string `json:"hostname,omitempty"`
	// Labels are Kubernetes node labels.
	Labels map[string]string `json:"labels,omitempty"`
	// Annotations are Kubernetes node annotations.
	Annotations map[string]string `json:"annotations,omitempty"`
	// Taints are Kubernetes node taints, by key: "value:Effect" or ":Effect"
	// (NoSchedule, PreferNoSchedule, NoExecute).
	Taints map[string]string `json:"taints,omitempty"`
	// KernelModules are loaded at boot, by name, with their parameters.
	KernelModules map[string][]string `json:"kernelModules,omitempty"`
	// Sysctls are kernel parameters.
	Sysctls map[string]string `json:"sysctls,omitempty"`
	// InstallDisk is where Talos is installed; defaults to the OS disk, by the link that the guest has of it.
	InstallDisk *string `json:"installDisk,omitempty"`
	// Patches are Talos configuration patches for this node, applied last.
	Patches []Patch `json:"patches,omitempty"`
}

// Patch is one Talos configuration patch: strategic merge (YAML, several documents allowed) or
// JSON 6902 (a list of operations). Exactly one of Inline and File is set.
type Patch struct {
	// Inline is the patch itself, as text or as YAML.
	Inline *Text `json:"inline,omitempty"`
	// File is a path relative to the project directory.
	File *string `json:"file,omitempty"`
}

// Text is free text that may hold something secret; it is never printed in errors. In a stack file
// it may also be written as YAML, which is taken as the text of that YAML.
type Text string

// Network is one network device of a node.
type Network struct {
	// Index is the device's number (net<index>); by default devices are numbered by name.
	Index *int `json:"index,omitempty" min:"0" max:"31"`
	// Bridge is the Proxmox bridge; defaults to the network's name.
	Bridge *string `json:"bridge,omitempty"`
	// VLAN is the VLAN tag on that bridge.
	VLAN *int `json:"vlan,omitempty" min:"1" max:"4094"`
	// MAC is the MAC address; derived from cluster, node and network name when unset.
	MAC *string `json:"mac,omitempty"`
	// Model is the emulated card.
	Model *string `json:"model,omitempty" enum:"virtio,e1000,e1000e,rtl8139,vmxnet3" default:"virtio"`
	// MTU is the maximum transmission unit in bytes; 1 takes the bridge's.
	MTU *int `json:"mtu,omitempty" min:"1" max:"65520"`
	// Queues is the number of packet queues of a virtio card.
	Queues *int `json:"queues,omitempty" min:"0" max:"64"`
	// RateLimit limits the card, in MB/s.
	RateLimit *int `json:"rateLimit,omitempty" min:"1"`
	// Firewall turns on the Proxmox firewall for the card.
	Firewall *bool `json:"firewall,omitempty" default:"false"`
	// Subnet is the network the addresses are in; gives a bare Address its prefix length.
	Subnet *string `json:"subnet,omitempty"`
	// Address is the static IPv4 address, "10.0.0.11/24" or, with Subnet, "10.0.0.11".
	Address *string `json:"address,omitempty"`
	// Gateway is the default IPv4 route; none when unset.
	Gateway *string `json:"gateway,omitempty"`
	// Subnet6 is the IPv6 network; gives a bare Address6 its prefix length.
	Subnet6 *string `json:"subnet6,omitempty"`
	// Address6 is the static IPv6 address.
	Address6 *string `json:"address6,omitempty"`
	// Gateway6 is the default IPv6 route.
	Gateway6 *string `json:"gateway6,omitempty"`
	// DHCP asks for an address; then Address must be unset on this card.
	DHCP *bool `json:"dhcp,omitempty" default:"false"`
	// Routes are further routes through this card.
	Routes []Route `json:"routes,omitempty"`
}

// Route is a static route.
type Route struct {
	// Network is the destination, "10.1.0.0/16".
	Network string `json:"network"`
	// Gateway is the next hop.
	Gateway *string `json:"gateway,omitempty"`
	// Metric orders routes to the same destination; the lowest wins.
	Metric *int `json:"metric,omitempty" min:"1"`
}

// Disk is a virtual disk.
type Disk struct {
	// Size in GiB. It can grow, never shrink.
	Size *GiB `json:"size,omitempty" min:"1"`
	// Datastore holds the disk; defaults to the host's.
	Datastore *string `json:"datastore,omitempty"`
	// Type is the bus.
	Type *string `json:"type,omitempty" enum:"scsi,virtio,sata" default:"scsi"`
	// UnitNumber is the slot on the bus; 0 for the OS disk, data disks are numbered from 1 by name.
	UnitNumber *int `json:"unitNumber,omitempty" min:"0" max:"30"`
	// Format of the disk's file; raw on block storage.
	Format *string `json:"format,omitempty" enum:"raw,qcow2,vmdk" default:"raw"`
	// Iothread gives the disk a thread of its own; by default where it can: on virtio, and on scsi with
	// scsiHardware virtio-scsi-single.
	Iothread *bool `json:"iothread,omitempty"`
	// Cache is the cache mode.
	Cache *string `json:"cache,omitempty" enum:"none,directsync,writethrough,writeback,unsafe" default:"none"`
	// AIO is the asynchronous I/O mode.
	AIO *string `json:"aio,omitempty" enum:"io_uring,native,threads" default:"io_uring"`
	// Discard passes trim requests on to the storage.
	Discard *bool `json:"discard,omitempty" default:"true"`
	// SSD presents the disk as a solid-state one; by default on scsi and sata, impossible on virtio.
	SSD *bool `json:"ssd,omitempty"`
	// Backup includes the disk in Proxmox backups.
	Backup *bool `json:"backup,omitempty" default:"true"`
	// Replicate includes the disk in Proxmox replication jobs.
	Replicate *bool `json:"replicate,omitempty" default:"true"`
	// Serial is the serial number the guest sees, up to 20 bytes. On virtio and sata Talos finds a disk by it, and a
	// disk that it mounts or is installed on gets one; on scsi it finds the disk by its slot.
	Serial *string `json:"serial,omitempty"`
	// Speed limits the disk.
	Speed *DiskSpeed `json:"speed,omitempty"`
	// Mountpoint makes Talos format the disk and mount it there, and in the kubelet: under /var/mnt
	// as a user volume, or /var/lib/longhorn and the like by a machine disk.
	Mountpoint *string `json:"mountpoint,omitempty"`
	// Filesystem of a disk with a mountpoint; xfs when unset.
	Filesystem *string `json:"filesystem,omitempty" enum:"xfs,ext4"`
	// KeepOnRebuild keeps the disk and its data when the node's VM is rebuilt.
	KeepOnRebuild *bool `json:"keepOnRebuild,omitempty" default:"false"`
}

// DiskSpeed limits a disk's throughput in MB/s and operations a second.
type DiskSpeed struct {
	// Read in MB/s.
	Read *int `json:"read,omitempty" min:"1"`
	// ReadBurst in MB/s.
	ReadBurst *int `json:"readBurst,omitempty" min:"1"`
	// Write in MB/s.
	Write *int `json:"write,omitempty" min:"1"`
	// WriteBurst in MB/s.
	WriteBurst *int `json:"writeBurst,omitempty" min:"1"`
	// IOPSRead in operations a second.
	IOPSRead *int `json:"iopsRead,omitempty" min:"1"`
	// IOPSWrite in operations a second.
	IOPSWrite *int `json:"iopsWrite,omitempty" min:"1"`
}
