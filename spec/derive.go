// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package spec

import (
	"cmp"
	"crypto/sha256"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// WorkerVMIDOffset is what the ids of workers have on top of the cluster's base.
const WorkerVMIDOffset = 100

// CDInterface is the drive of the boot ISO.
const CDInterface = "ide0"

// AgentExtension is the system extension that the QEMU guest agent needs.
const AgentExtension = "siderolabs/qemu-guest-agent"

// fillNode fills what follows from the node itself and from what all nodes share.
func (c *Config) fillNode(n *NamedNode) {
	if host, ok := PlaceNode(c.Proxmox, *n); ok {
		setDefault(&n.Host, host)
	}
	if id, ok := vmidOf(c.Cluster, *n); ok {
		setDefault(&n.VMID, id)
	}
	host := c.Proxmox.Hosts[Value(n.Host)]
	FillDefaults(&host)
	if host.Zone != nil {
		setDefault(&n.Zone, *host.Zone)
	}
	setDefault(&n.Node.Image, DefaultImage)
	setDefault(&n.Hostname, n.Name)
	setDefault(&n.Agent, HasExtension(c.Image(*n), AgentExtension))

	ensure(&n.OSDisk)
	ensure(&n.VGA)
	ensure(&n.Timeouts)
	if Value(n.BIOS) == "ovmf" {
		ensure(&n.EFIDisk)
	}
	FillDefaults(&n.Node)
	c.fillNetworks(n)
	fillDisks(n, *host.Datastore)
	if n.VMID != nil {
		fillLinks(n)
	}
	setDefault(&n.InstallDisk, DevicePath(*n.OSDisk))
}

// onlyGPUs reports whether every node that takes workloads has a GPU whose taint the stack file does not set.
func (c Config) onlyGPUs() bool {
	some := false
	for _, n := range c.Nodes {
		if n.IsControlPlane() && !c.SchedulingOnControlPlanes() {
			continue
		}
		closed := false
		for _, taint := range n.Taints {
			closed = closed || strings.HasSuffix(taint, ":NoSchedule") || strings.HasSuffix(taint, ":NoExecute")
		}
		if closed {
			continue
		}
		if n.GPU == nil || n.GPU.Vendor == nil || n.GPU.Taint != nil && !*n.GPU.Taint {
			return false
		}
		some = true
	}

	return some
}

// HasExtension reports whether the image names the extension: in full, in short, or by its nickname.
func HasExtension(img Image, full string) bool {
	return slices.ContainsFunc(img.Extensions, func(name string) bool { return OfficialExtension(name) == full })
}

// extensionOwner begins the names of the official extensions.
const extensionOwner = "siderolabs/"

// OfficialExtension returns the full name of an extension that is named in full ("siderolabs/lldpd"), in
// short ("lldpd"), or by what people call it ("lldp"). A name with another owner stays as it is.
func OfficialExtension(name string) string {
	short := strings.TrimPrefix(name, extensionOwner)
	if strings.Contains(short, "/") {
		return name
	}
	switch short {
	case "lldp":
		short = "lldpd"
	case "qemu-agent", "guest-agent":
		short = "qemu-guest-agent"
	case "iscsi":
		short = "iscsi-tools"
	case "nfs":
		short = "nfs-utils"
	}

	return extensionOwner + short
}

func (c *Config) fillNetworks(n *NamedNode) {
	for _, d := range n.Devices() {
		network := d.Network
		setDefault(&network.Index, d.Index)
		setDefault(&network.Bridge, d.Name)
		setDefault(&network.MAC, MACFor(Value(c.Cluster.Name), n.Name, d.Name))
		n.Networks[d.Name] = network
	}
}

// MACFor returns the MAC address of a node's network device: locally administered, unicast, and the same
// for the same names for ever.
func MACFor(cluster, node, network string) string {
	sum := sha256.Sum256([]byte(cluster + "\x00" + node + "\x00" + network))
	first := sum[0]&^0x01 | 0x02

	return fmt.Sprintf("%02x:%02x:%02x:%02x:%02x:%02x", first, sum[1], sum[2], sum[3], sum[4], sum[5])
}

func fillDisks(n *NamedNode, datastore string) {
	setDefault(&n.OSDisk.Size, GiB(20))
	setDefault(&n.OSDisk.UnitNumber, 0)
	setDefault(&n.OSDisk.Datastore, datastore)
	fillBus(n, n.OSDisk)
	setDefault(&n.CloudInitDatastore, cmp.Or(*n.OSDisk.Datastore, "local-lvm"))
	if n.EFIDisk != nil {
		setDefault(&n.EFIDisk.Datastore, *n.OSDisk.Datastore)
	}
	if n.TPM != nil {
		setDefault(&n.TPM.Datastore, *n.OSDisk.Datastore)
	}

	names := sortedKeys(n.Disks)
	slots := numberSlots(names, func(name string) *int { return n.Disks[name].UnitNumber }, 1)
	for _, name := range names {
		disk := n.Disks[name]
		setDefault(&disk.UnitNumber, slots[name])
		setDefault(&disk.Datastore, datastore)
		if disk.Mountpoint != nil {
			setDefault(&disk.Filesystem, "xfs")
		}
		fillBus(n, &disk)
		n.Disks[name] = disk
	}
}

// fillBus turns on what the disk's bus can do.
func fillBus(n *NamedNode, d *Disk) {
	bus := *d.Type
	setDefault(&d.SSD, bus != "virtio")
	setDefault(&d.Iothread, bus == "virtio" || bus == "scsi" && *n.SCSIHardware == "virtio-scsi-single")
}

// DevicePath returns the disk's device file in the guest when it is the first on its bus:
// /dev/sda, or /dev/vda on virtio.
func DevicePath(d Disk) string {
	if Value(d.Type) == "virtio" {
		return "/dev/vda"
	}

	return "/dev/sda"
}

// vmidOf returns the node's VM id: the cluster's base, plus 100 for a worker, plus the number at the end
// of the node's name. So no other node has a say in it.
func vmidOf(cluster Cluster, n NamedNode) (int, bool) {
	number, ok := NumberOf(n.Name)
	if cluster.VMIDBase == nil || !ok {
		return 0, false
	}
	id := *cluster.VMIDBase + number
	if !n.IsControlPlane() {
		id += WorkerVMIDOffset
	}

	return id, true
}

// NumberOf returns the number at the end of a name: 2 for "talos-cp-02".
func NumberOf(name string) (int, bool) {
	digits := name[len(strings.TrimRight(name, "0123456789")):]
	number, err := strconv.Atoi(digits)

	return number, err == nil && len(digits) <= 9
}
