// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package guest

import (
	"context"
	"net/netip"

	"github.com/talos-proxmox/talos-proxmox/lab/fault"
	"github.com/talos-proxmox/talos-proxmox/lab/image"
)

// Exit says why a guest stopped running.
type Exit int

const (
	// ExitPowerOff: the machine is off (ACPI shutdown, power cut, or its own doing).
	ExitPowerOff Exit = iota
	// ExitReboot: the machine starts again from its boot order.
	ExitReboot
	// ExitHalt: the CPU stopped; the VM still counts as running and answers nobody.
	ExitHalt
)

// Guest plays the operating system inside a powered-on VM.
type Guest interface {
	// Run runs from power-on until the guest stops by itself or ctx ends (a power cut). It must
	// have released every address and listener when it returns.
	Run(ctx context.Context, m *Machine) Exit
}

// Machine holds what a guest sees of its VM.
type Machine struct {
	Host      string
	VMID      int
	Name      string
	UUID      string
	MemoryMiB int
	Cores     int
	CPUType   string
	BIOS      string
	// AgentEnabled reports whether the VM has the virtio port of the QEMU guest agent.
	AgentEnabled bool

	// Type is the board, "q35"; "" stands for i440fx.
	Type  string
	NICs  []NIC
	Disks []*Disk
	// CDDrives are the drives that have a medium.
	CDDrives []CDDrive
	// CD is the image in the CD drive, nil when there is none.
	CD *Image
	// BootedFromCD tells which medium the firmware chose.
	BootedFromCD bool
	// BootDisk is the disk it booted from, nil when BootedFromCD.
	BootDisk  *Disk
	CloudInit *CloudInit
	PCI       []PCI

	Net   *Net
	Clock Clock
	Trace *Trace

	// ShutdownRequested is closed by an ACPI shutdown.
	ShutdownRequested <-chan struct{}
	// SetAgent tells the host what the guest agent reports; nil when no agent runs.
	SetAgent func(func() []Interface)
	// Faults are what goes wrong; nil when nothing does.
	Faults *fault.Set
	// Names are what a fault may call the machine: its name, its id, its addresses.
	Names []string
	// Lose kills what runs inside, at once. The VM stays on, and boots again when until closes.
	Lose func(until <-chan struct{})
	// PullImage resolves a container image as the site's registries hold it: an installer image
	// gives the Talos it installs. The error is the registry's own.
	PullImage func(ctx context.Context, ref string) (*Image, error)
}

// NIC describes a network card.
type NIC struct {
	Index  int
	MAC    string
	Bridge string
	VLAN   int
	MTU    int
	Model  string
}

// CDDrive describes a drive with a medium.
type CDDrive struct {
	Device string // "ide2"
	Size   int64  // bytes
}

// Interface describes a network interface as the guest agent reports it.
type Interface struct {
	Name      string
	MAC       string
	Addresses []netip.Prefix
}

// CloudInit holds what the cloud-init drive holds.
type CloudInit struct {
	Hostname   string
	User       string
	IPConfigs  []IPConfig
	DNSServers []string
	DNSDomain  string
}

// IPConfig holds the address setting of the NIC with the same index.
type IPConfig struct {
	IPv4     netip.Prefix // invalid: none
	Gateway4 netip.Addr
	DHCP4    bool
	IPv6     netip.Prefix
	Gateway6 netip.Addr
}

// PCI describes a passed-through device.
type PCI struct {
	Address string
	Mapping string
}

// Image holds what an image file or a boot disk holds: which Talos, of which schematic.
type Image = image.Image

// Disk holds a disk attached to a VM. What the guest stores survives reboots and the lab's own restarts.
type Disk struct {
	Device string // "scsi0"
	Size   int64  // bytes
	Serial string
	// DeviceID is what a SCSI disk answers that is asked who it is.
	DeviceID string
	// Controller is the SCSI controller, "virtio-scsi-pci"; "" stands for lsi.
	Controller string
	// SSD reports whether the disk presents itself as one without rotating parts.
	SSD bool
	// Load returns what is on the disk, nil when it is blank.
	Load func() []byte
	// Store replaces what is on the disk, durably.
	Store func([]byte) error
	// Image is the disk image that was imported onto it, nil when it was created blank.
	Image *Image
}
