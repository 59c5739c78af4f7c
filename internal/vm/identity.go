// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package vm

import (
	"fmt"

	"github.com/talos-proxmox/talos-proxmox/internal/check"
	"github.com/talos-proxmox/talos-proxmox/internal/image"
	"github.com/talos-proxmox/talos-proxmox/spec"
)

// Identity holds what of a VM cannot be edited in place, or not without losing data. It is kept in the
// stack's state, so that an edit can be held against what was.
type Identity struct {
	// Rebuild is the number of times the user asked for a new VM.
	Rebuild int `json:"rebuild"`
	// Host that runs the VM.
	Host string `json:"host"`
	// VMID is the VM's id; 0 when Proxmox chose it.
	VMID int `json:"vmId"`
	// Migrate says that a new host moves the VM live.
	Migrate bool `json:"migrate"`
	// Fixed says what keeps the VM from moving live.
	Fixed []string `json:"fixed,omitempty"`
	// HA says that Proxmox chooses the host.
	HA bool `json:"ha,omitempty"`
	// Role of the node in the cluster.
	Role string `json:"role"`
	// Address that etcd and Kubernetes know the node by; empty when it has no static one.
	Address string `json:"address,omitempty"`
	// Disks by slot.
	Disks map[string]Disk `json:"disks"`
	// DataVMID is the id of the VM that holds the kept disks; 0 when none is kept.
	DataVMID int `json:"dataVmId,omitempty"`
	// EFIDisk is what the UEFI variables are kept in; empty without.
	EFIDisk string `json:"efiDisk,omitempty"`
	// EFIDatastore is where they are.
	EFIDatastore string `json:"efiDatastore,omitempty"`
	// TPM is the version of the TPM; empty without.
	TPM string `json:"tpm,omitempty"`
	// TPMDatastore is where its state is.
	TPMDatastore string `json:"tpmDatastore,omitempty"`
	// System is the kind of Talos on the disk: platform, architecture, secure boot; empty when it is not known.
	System string `json:"system"`
}

// Disk holds what of a disk cannot be edited freely.
type Disk struct {
	// Field of the node that describes it, "disks.longhorn".
	Field string `json:"field"`
	// Size in GiB.
	Size int `json:"size"`
	// Format of its file.
	Format string `json:"format"`
	// Kept says that it outlives the VM.
	Kept bool `json:"kept,omitempty"`
	// Limited says that its speed is limited.
	Limited bool `json:"limited,omitempty"`
}

// IdentityOf returns the identity of a complete node's VM, built for the rebuild-th time.
func IdentityOf(n spec.NamedNode, img spec.Image, rebuild int) Identity {
	id := Identity{
		Rebuild: rebuild,
		Host:    spec.Value(n.Host),
		VMID:    spec.Value(n.VMID),
		Migrate: spec.Value(n.Migrate),
		Fixed:   fixed(n, img),
		HA:      n.HA != nil,
		Role:    string(spec.Value(n.Role)),
		Disks:   map[string]Disk{n.OSDisk.Interface(): diskOf("osDisk", *n.OSDisk)},
		System:  spec.Value(img.Platform) + " " + spec.Value(img.Arch),
	}
	if address := n.Address(); address.IsValid() {
		id.Address = address.String()
	}
	if len(KeptDisks(n)) > 0 {
		id.DataVMID = spec.Value(n.DataVMID)
	}
	for _, disk := range n.DataDisks() {
		id.Disks[disk.Interface()] = diskOf(check.Join("disks", disk.Name), disk.Disk)
	}
	if spec.Value(img.SecureBoot) {
		id.System += " secure boot"
	}
	if e := n.EFIDisk; spec.Value(n.BIOS) == "ovmf" && e != nil {
		id.EFIDisk = fmt.Sprintf("%s %s", spec.Value(e.Type), spec.Value(e.Format))
		if spec.Value(e.PreEnrolledKeys) {
			id.EFIDisk += " with keys"
		}
		id.EFIDatastore = spec.Value(e.Datastore)
	}
	if n.TPM != nil {
		id.TPM, id.TPMDatastore = spec.Value(n.TPM.Version), spec.Value(n.TPM.Datastore)
	}

	return id
}

func diskOf(field string, d spec.Disk) Disk {
	return Disk{
		Field: field, Size: int(spec.Value(d.Size)), Format: spec.Value(d.Format), Kept: spec.Value(d.KeepOnRebuild),
		Limited: Limited(d),
	}
}

// fixed returns what keeps a VM from moving live.
func fixed(n spec.NamedNode, img spec.Image) []string {
	var reasons []string
	if n.GPU != nil {
		reasons = append(reasons, "a PCI device is passed through (gpu)")
	}
	if len(n.USB) > 0 {
		reasons = append(reasons, "a USB device is passed through (usb)")
	}
	if image.ISO(img) && img.DatastoreHost == nil && spec.Value(n.CDROM) {
		reasons = append(reasons, "the ISO in its drive is on a local datastore (set cdRom to false and run up first)")
	}

	return reasons
}

// Replaced returns the part of the identity that decides whether a VM is replaced, and who the node was to its
// cluster.
func (id Identity) Replaced() Identity {
	return Identity{
		Rebuild: id.Rebuild, Host: id.Host, VMID: id.VMID, Migrate: id.Migrate, HA: id.HA,
		Role: id.Role, Address: id.Address, EFIDisk: id.EFIDisk, TPM: id.TPM,
	}
}

// Replaces reports whether an edit from was to now replaces the VM, where it is permitted.
func Replaces(was, now Identity) bool {
	moves := was.Host != now.Host && !now.Migrate && !(was.HA && now.HA)

	return was.Rebuild != now.Rebuild || moves || was.VMID != now.VMID || was.EFIDisk != now.EFIDisk || was.TPM != now.TPM
}
