// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package vms

import (
	"slices"

	"github.com/talos-proxmox/talos-proxmox/internal/check"
	"github.com/talos-proxmox/talos-proxmox/internal/rules/scope"
	"github.com/talos-proxmox/talos-proxmox/spec"
)

// Emulated hardware for which Talos's kernel has no driver (siderolabs/pkgs: kernel/build/config-amd64 and config-arm64, releases
// 1.10 to 1.14): SYM53C8XX_2 and IB700_WDT are off everywhere, VMWARE_PVSCSI and I6300ESB_WDT on arm64. The card that Proxmox VE
// emulates as rtl8139 is an 8139C+, which needs 8139CP, and that is off too.
var (
	driverlessSCSI    = []string{"lsi", "lsi53c810"}
	driverlessSCSIArm = []string{"lsi", "lsi53c810", "pvscsi"}
)

// drivers checks that Talos can drive the hardware that the VM shows it.
func (r *rules) drivers(at string, n spec.NamedNode) {
	arm := spec.Value(r.Config.Image(n).Arch) == "arm64"
	without := driverlessSCSI
	if arm {
		without = driverlessSCSIArm
	}
	if slices.Contains(without, *n.SCSIHardware) && onSCSI(n) && !r.Wrong(at+".scsiHardware") {
		r.Addf(at+".scsiHardware",
			"is %s, for which Talos has no driver, so that it would find no disk: write virtio-scsi-single", *n.SCSIHardware)
	}
	for _, name := range scope.SortedKeys(n.Networks) {
		if spec.Value(n.Networks[name].Model) == "rtl8139" {
			r.Addf(check.Key(at+".networks", name)+".model",
				"is rtl8139, for which Talos has no driver, so that it would have no network: write virtio")
		}
	}
	switch {
	case n.Watchdog == nil:
	case arm:
		r.Addf(at+".watchdog", "has no driver in Talos on arm64, so that nothing would feed it: remove it")
	case *n.Watchdog.Model == "ib700":
		r.Addf(at+".watchdog.model", "is ib700, for which Talos has no driver, so that nothing would feed it: write i6300esb")
	}
}

// onSCSI reports whether a disk of the node is on the SCSI controller.
func onSCSI(n spec.NamedNode) bool {
	if *n.OSDisk.Type == "scsi" {
		return true
	}
	for _, d := range n.DataDisks() {
		if *d.Type == "scsi" {
			return true
		}
	}

	return false
}
