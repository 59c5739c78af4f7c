// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package vm

import (
	"strings"

	"github.com/talos-proxmox/talos-proxmox/internal/image"
	"github.com/talos-proxmox/talos-proxmox/spec"
)

const (
	// CDInterface is the drive of the boot ISO. A q35 machine has ide0 and ide2 only.
	CDInterface = spec.CDInterface
	// EmptyCD leaves the drive in place without a medium.
	EmptyCD = "none"
)

// ARM reports whether the image is for 64-bit ARM.
func ARM(img spec.Image) bool { return spec.Value(img.Arch) == "arm64" }

// CloudInitInterface returns the drive of the cloud-init data.
func CloudInitInterface(img spec.Image) string {
	if ARM(img) {
		return "scsi30" // ARM machines have no IDE
	}

	return "ide2"
}

// BootOrder returns the order that the node asks for. By default the disk comes first: an installed Talos
// refuses to boot from its installation medium.
func BootOrder(n spec.NamedNode, img spec.Image) []string {
	if len(n.BootOrder) > 0 {
		return n.BootOrder
	}
	order := []string{n.OSDisk.Interface()}
	if image.ISO(img) {
		order = append(order, CDInterface)
	}

	return order
}

// Chipset returns the VM's machine type.
func Chipset(n spec.NamedNode, img spec.Image) string {
	if ARM(img) {
		return "virt"
	}
	if machine := spec.Value(n.Machine); machine != "i440fx" {
		return machine
	}

	return "pc"
}

// CPUType returns the emulated CPU; for ARM an x86 type becomes the most capable ARM one.
func CPUType(n spec.NamedNode, img spec.Image) string {
	kind := spec.Value(n.CPUType)
	if ARM(img) && strings.HasPrefix(kind, "x86-64") {
		return "max"
	}

	return kind
}

// KeptDisks returns the data disks that outlive the VM, in the order of their slots.
func KeptDisks(n spec.NamedNode) []spec.DataDisk {
	var kept []spec.DataDisk
	for _, disk := range n.DataDisks() {
		if spec.Value(disk.KeepOnRebuild) {
			kept = append(kept, disk)
		}
	}

	return kept
}

// Limited reports whether a disk's speed is limited. The provider knows no limit of zero.
func Limited(d spec.Disk) bool {
	if d.Speed == nil {
		return false
	}
	s := *d.Speed
	for _, limit := range []*int{s.Read, s.ReadBurst, s.Write, s.WriteBurst, s.IOPSRead, s.IOPSWrite} {
		if spec.Value(limit) > 0 {
			return true
		}
	}

	return false
}
