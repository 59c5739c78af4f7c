// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package spec

// VM is the virtual hardware of a node, with the defaults Talos needs.
type VM struct {
	// CPU is the number of cores per socket.
	CPU *int `json:"cpu,omitempty" min:"1" max:"1024" default:"2"`
	// Sockets is the number of CPU sockets.
	Sockets *int `json:"sockets,omitempty" min:"1" max:"16" default:"1"`
	// CPUType is the emulated CPU; Talos needs at least x86-64-v2.
	CPUType *string `json:"cpuType,omitempty" default:"x86-64-v2-AES"`
	// CPUFlags are CPU flags to turn on (+aes) or off (-pcid).
	CPUFlags []string `json:"cpuFlags,omitempty"`
	// CPUUnits is the CPU weight against other VMs.
	CPUUnits *int `json:"cpuUnits,omitempty" min:"1" max:"262144" default:"1024"`
	// CPULimit limits the CPU time, in cores; 0 is no limit.
	CPULimit *int `json:"cpuLimit,omitempty" min:"0" max:"128"`
	// CPUAffinity pins the VM to host cores, "0-3,8". Needs root@pam.
	CPUAffinity *string `json:"cpuAffinity,omitempty"`
	// NUMA turns on NUMA emulation; needed by hugepages.
	NUMA *bool `json:"numa,omitempty" default:"false"`
	// NUMANodes describe the NUMA topology.
	NUMANodes []NUMANode `json:"numaNodes,omitempty"`

	// Memory in MiB. At least 2048 for a control plane, 1024 for a worker.
	Memory *MiB `json:"memory,omitempty" min:"1024" default:"4096"`
	// Balloon is the least memory in MiB that the host may shrink the guest to; 0 turns ballooning off.
	Balloon *MiB `json:"balloon,omitempty" min:"0" default:"0"`
	// Hugepages backs the memory with huge pages: 2 or 1024 MiB ones, or any. Needs root@pam.
	Hugepages *string `json:"hugepages,omitempty" enum:"2,1024,any"`
	// KeepHugepages keeps the pages allocated after the VM stopped.
	KeepHugepages *bool `json:"keepHugepages,omitempty"`
	// SharedMemory is inter-VM shared memory, in MiB. Needs root@pam.
	SharedMemory *MiB `json:"sharedMemory,omitempty" min:"1"`

	// Machine is the chipset.
	Machine *string `json:"machine,omitempty" enum:"q35,i440fx" default:"q35"`
	// BIOS is the firmware.
	BIOS *string `json:"bios,omitempty" enum:"seabios,ovmf" default:"seabios"`
	// EFIDisk holds the UEFI variables; made by itself with ovmf.
	EFIDisk *EFIDisk `json:"efiDisk,omitempty"`
	// TPM adds a TPM state volume.
	TPM *TPM `json:"tpm,omitempty"`
	// SCSIHardware is the SCSI controller.
	//nolint:lll // a tag stays on one line
	SCSIHardware *string `json:"scsiHardware,omitempty" enum:"virtio-scsi-single,virtio-scsi-pci,lsi,lsi53c810,megasas,pvscsi" default:"virtio-scsi-single"`
	// OSType is what Proxmox believes the guest to be.
	OSType *string `json:"osType,omitempty" enum:"l26,l24,other" default:"l26"`
	// Agent turns on the QEMU guest agent. Needs the extension siderolabs/qemu-guest-agent; on by
	// default exactly when the image has it.
	Agent *bool `json:"agent,omitempty"`
	// AgentTimeout is how long creating, changing or refreshing a VM waits for its agent to answer;
	// nothing here needs the answer.
	AgentTimeout *Duration `json:"agentTimeout,omitempty" default:"10s"`
	// OnBoot starts the VM with its host.
	OnBoot *bool `json:"onBoot,omitempty" default:"true"`
	// BootOrder lists devices in the order in which the firmware tries them: disks (scsi0), the boot ISO's
	// drive (ide0) and network devices (net0). The OS disk, then the ISO, when unset; the disk stands
	// before the ISO, from which an installed Talos halts.
	BootOrder []string `json:"bootOrder,omitempty"`
	// Startup is the order among the host's VMs.
	Startup *Startup `json:"startup,omitempty"`
	// Tags of the VM.
	Tags []string `json:"tags,omitempty"`
	// Description of the VM.
	Description *string `json:"description,omitempty"`
	// Pool is the Proxmox resource pool.
	Pool *string `json:"pool,omitempty"`
	// Protection makes Proxmox refuse to remove the VM or its disks.
	Protection *bool `json:"protection,omitempty" default:"false"`
	// Watchdog adds a watchdog card.
	Watchdog *Watchdog `json:"watchdog,omitempty"`
	// VGA is the display.
	VGA *VGA `json:"vga,omitempty"`
	// SerialConsole adds serial0.
	SerialConsole *bool `json:"serialConsole,omitempty" default:"true"`
	// Tablet adds a USB tablet, which costs CPU time in idle guests.
	Tablet *bool `json:"tablet,omitempty" default:"false"`
	// ACPI turns ACPI on.
	ACPI *bool `json:"acpi,omitempty" default:"true"`
	// KVMArguments are passed to kvm as they stand. Needs root@pam.
	KVMArguments *string `json:"kvmArguments,omitempty"`
	// HookScript is a file id, "local:snippets/hook.sh". Needs root@pam.
	HookScript *string `json:"hookScript,omitempty"`
	// GPU passes GPUs or other PCI devices through.
	GPU *GPU `json:"gpu,omitempty"`
	// USB are USB devices by name of their resource mapping or by "vendor:product".
	USB []USB `json:"usb,omitempty"`
	// HA makes the VM a high-availability resource.
	HA *HA `json:"ha,omitempty"`
	// Migrate moves the VM live when its host changes; otherwise a new host replaces it.
	Migrate *bool `json:"migrate,omitempty" default:"true"`
	// CDROM keeps the boot ISO in the VM's drive. Empty the drive before the VM moves to another host
	// where the ISO's datastore is not shared: Proxmox moves no VM with a local one.
	CDROM *bool `json:"cdRom,omitempty" default:"true"`
	// DataVMID is the id of the VM that holds the disks kept on rebuild and never starts; needed when
	// a disk has keepOnRebuild.
	DataVMID *int `json:"dataVmId,omitempty" min:"100" max:"999999999"`
	// CloudInitDatastore holds the cloud-init drive; defaults to the OS disk's.
	CloudInitDatastore *string `json:"cloudInitDatastore,omitempty"`
	// Timeouts of VM operations.
	Timeouts *VMTimeouts `json:"timeouts,omitempty"`
}

// NUMANode is one virtual NUMA node.
type NUMANode struct {
	// CPUs of the node, "0-3".
	CPUs string `json:"cpus"`
	// Memory in MiB.
	Memory MiB `json:"memory" min:"1"`
	// HostNodes are the host's NUMA nodes to use, "0".
	HostNodes *string `json:"hostNodes,omitempty"`
	// Policy of memory allocation.
	Policy *string `json:"policy,omitempty" enum:"preferred,bind,interleave" default:"preferred"`
}

// EFIDisk holds UEFI variables.
type EFIDisk struct {
	// Datastore; defaults to the OS disk's.
	Datastore *string `json:"datastore,omitempty"`
	// Type is the size class of the variable store.
	Type *string `json:"type,omitempty" enum:"4m,2m" default:"4m"`
	// PreEnrolledKeys enrols Microsoft's keys; off for Talos secure boot.
	PreEnrolledKeys *bool `json:"preEnrolledKeys,omitempty" default:"false"`
	// Format of the volume.
	Format *string `json:"format,omitempty" enum:"raw,qcow2" default:"raw"`
}

// TPM is a TPM state volume.
type TPM struct {
	// Datastore; defaults to the OS disk's.
	Datastore *string `json:"datastore,omitempty"`
	// Version of the TPM.
	Version *string `json:"version,omitempty" enum:"v2.0,v1.2" default:"v2.0"`
}

// Startup orders VMs when their host starts and stops.
type Startup struct {
	// Order is the position; lower starts first.
	Order *int `json:"order,omitempty" min:"0"`
	// UpDelay is the wait before the next VM starts, in seconds.
	UpDelay *int `json:"upDelay,omitempty" min:"0" max:"86400"`
	// DownDelay is the wait before the next VM stops, in seconds.
	DownDelay *int `json:"downDelay,omitempty" min:"0" max:"86400"`
}

// Watchdog is a watchdog card.
type Watchdog struct {
	// Model of the card.
	Model *string `json:"model,omitempty" enum:"i6300esb,ib700" default:"i6300esb"`
	// Action on expiry.
	Action *string `json:"action,omitempty" enum:"reset,shutdown,poweroff,pause,debug,none" default:"reset"`
}

// VGA is the display.
type VGA struct {
	// Type of the display.
	Type *string `json:"type,omitempty" enum:"std,cirrus,vmware,qxl,virtio,virtio-gl,serial0,serial1,serial2,serial3,none" default:"std"`
	// Memory in MiB.
	Memory *int `json:"memory,omitempty" min:"4" max:"512"`
	// Clipboard sharing.
	Clipboard *string `json:"clipboard,omitempty" enum:"vnc"`
}

// GPU passes PCI devices through. Either Mapping or Devices is set.
type GPU struct {
	// Mapping is the name of an existing Proxmox PCI resource mapping.
	Mapping *string `json:"mapping,omitempty"`
	// Devices are PCI addresses: "0000:01:00.0", or "0000:01:00" for all functions of a device.
	Devices []string `json:"devices,omitempty"`
	// Identities say what is at the addresses of Devices, as Proxmox checks it when the VM starts.
	// Without them the devices are passed by address alone, which needs root@pam.
	Identities map[string]PCIIdentity `json:"identities,omitempty"`
	// PCIe presents the device as PCI Express; needs q35.
	PCIe *bool `json:"pcie,omitempty" default:"true"`
	// ROMBar shows the firmware ROM to the guest.
	ROMBar *bool `json:"romBar,omitempty" default:"true"`
	// XVGA makes the device the primary display.
	XVGA *bool `json:"xvga,omitempty" default:"false"`
	// MDev is a mediated device type.
	MDev *string `json:"mdev,omitempty"`
	// ROMFile is a ROM file in the host's share directory.
	ROMFile *string `json:"romFile,omitempty"`
	// Vendor brings the whole bundle: extension check, kernel module, runtime class, label, taint.
	Vendor *string `json:"vendor,omitempty" enum:"nvidia,amd,intel"`
	// Taint keeps other workloads off the node. Where every node that takes workloads has a GPU, it is off by default: else
	// not even the cluster's DNS would run.
	Taint *bool `json:"taint,omitempty" default:"true"`
}

// PCIIdentity says what a PCI device is; `lspci -nnv` on the host shows it.
type PCIIdentity struct {
	// ID is vendor and device, "10de:2684".
	ID string `json:"id"`
	// SubsystemID is the subsystem's vendor and device, "10de:16a1"; needed where the device has one.
	SubsystemID *string `json:"subsystemId,omitempty"`
	// IOMMUGroup is the number of the device's IOMMU group on the host.
	IOMMUGroup *int `json:"iommuGroup,omitempty" min:"0"`
}

// USB is a passed-through USB device. Either Mapping or Host is set.
type USB struct {
	// Mapping is the name of a Proxmox USB resource mapping.
	Mapping *string `json:"mapping,omitempty"`
	// Host is "vendor:product" or "bus-port". Needs root@pam.
	Host *string `json:"host,omitempty"`
	// USB3 connects it to a USB 3 controller.
	USB3 *bool `json:"usb3,omitempty" default:"false"`
}

// HA is a Proxmox high-availability resource.
type HA struct {
	// Group is an HA group (Proxmox VE 8 only; version 9 has rules instead).
	Group *string `json:"group,omitempty"`
	// State that HA keeps.
	State *string `json:"state,omitempty" enum:"started,stopped,enabled,disabled,ignored" default:"started"`
	// MaxRestart is how often a failed start is tried again.
	MaxRestart *int `json:"maxRestart,omitempty" min:"0" max:"10"`
	// MaxRelocate is how often the VM is moved after failed restarts.
	MaxRelocate *int `json:"maxRelocate,omitempty" min:"0" max:"10"`
	// Comment of the resource.
	Comment *string `json:"comment,omitempty"`
}

// VMTimeouts limit VM operations, in seconds.
type VMTimeouts struct {
	// Create covers creation, import, start and the agent.
	Create *int `json:"create,omitempty" min:"1" max:"86400" default:"1800"`
	// Migrate covers a live migration.
	Migrate *int `json:"migrate,omitempty" min:"1" max:"86400" default:"1800"`
	// Reboot covers a reboot.
	Reboot *int `json:"reboot,omitempty" min:"1" max:"86400" default:"1800"`
	// Shutdown covers an orderly shutdown.
	Shutdown *int `json:"shutdown,omitempty" min:"1" max:"86400" default:"1800"`
	// Start covers a start.
	Start *int `json:"start,omitempty" min:"1" max:"86400" default:"1800"`
	// Stop covers a hard stop.
	Stop *int `json:"stop,omitempty" min:"1" max:"86400" default:"300"`
}
