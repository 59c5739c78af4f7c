// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package hardware

import (
	"fmt"
	"maps"
	"slices"

	"github.com/talos-proxmox/talos-proxmox/internal/check"
	"github.com/talos-proxmox/talos-proxmox/internal/image"
	"github.com/talos-proxmox/talos-proxmox/spec"
)

// Identity is what of a VM cannot be edited in place, or not without losing data. It is kept in the
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
	// Disks by slot.
	Disks map[string]Disk `json:"disks"`
	// EFIDisk is what the UEFI variables are kept in; empty without.
	EFIDisk string `json:"efiDisk,omitempty"`
	// TPM is the version of the TPM; empty without.
	TPM string `json:"tpm,omitempty"`
	// System is the kind of Talos on the disk: platform, architecture, secure boot.
	System string `json:"system"`
}

// Disk is what of a disk cannot be edited at will.
type Disk struct {
	// Field of the node that describes it, "disks.longhorn".
	Field string `json:"field"`
	// Size in GiB.
	Size int `json:"size"`
	// Format of its file.
	Format string `json:"format"`
	// Kept says that it outlives the VM.
	Kept bool `json:"kept,omitempty"`
}

// IdentityOf is the identity of a complete node's VM, built for the rebuild-th time.
func IdentityOf(n spec.NamedNode, img spec.Image, rebuild int) Identity {
	id := Identity{
		Rebuild: rebuild,
		Host:    spec.Or(n.Host, ""),
		VMID:    spec.Or(n.VMID, 0),
		Migrate: spec.Or(n.Migrate, true),
		Fixed:   fixed(n, img),
		HA:      n.HA != nil,
		Disks:   map[string]Disk{n.OSDisk.Interface(): diskOf("osDisk", *n.OSDisk)},
		System:  spec.Or(img.Platform, "nocloud") + " " + spec.Or(img.Arch, "amd64"),
	}
	for _, disk := range n.DataDisks() {
		id.Disks[disk.Interface()] = diskOf(check.Join("disks", disk.Name), disk.Disk)
	}
	if spec.Or(img.SecureBoot, false) {
		id.System += " secure boot"
	}
	if e := n.EFIDisk; spec.Or(n.BIOS, "seabios") == "ovmf" && e != nil {
		id.EFIDisk = fmt.Sprintf("%s %s", spec.Or(e.Type, "4m"), spec.Or(e.Format, "raw"))
		if spec.Or(e.PreEnrolledKeys, false) {
			id.EFIDisk += " with keys"
		}
	}
	if n.TPM != nil {
		id.TPM = spec.Or(n.TPM.Version, "v2.0")
	}

	return id
}

func diskOf(field string, d spec.Disk) Disk {
	return Disk{
		Field: field, Size: int(spec.Or(d.Size, 0)), Format: spec.Or(d.Format, "raw"), Kept: spec.Or(d.KeepOnRebuild, false),
	}
}

// fixed is what keeps a VM from moving live.
func fixed(n spec.NamedNode, img spec.Image) []string {
	var reasons []string
	if n.GPU != nil {
		reasons = append(reasons, "a PCI device is passed through (gpu)")
	}
	if len(n.USB) > 0 {
		reasons = append(reasons, "a USB device is passed through (usb)")
	}
	if image.ISO(img) && img.DatastoreHost == nil && spec.Or(n.CDROM, true) {
		reasons = append(reasons, "the ISO in its drive is on a local datastore (set cdRom to false and run up first)")
	}
	if len(KeptDisks(n)) > 0 {
		reasons = append(reasons, "it has disks that belong to another VM (keepOnRebuild)")
	}

	return reasons
}

const (
	fieldHost = "host"
	fieldVMID = "vmId"
	fieldEFI  = "efiDisk"
	fieldTPM  = "tpm"
)

// ReplaceFields are the fields whose edits replace a VM where the stack permits it.
func ReplaceFields() []string { return []string{fieldHost, fieldVMID, fieldEFI, fieldTPM} }

// Refuse records every edit from was to now that would replace the VM of the node without
// permission, or that cannot be done. A rebuild that the user asked for permits all of them.
func Refuse(node string, was, now Identity, allowed []string, l *check.List) {
	if was.Rebuild != now.Rebuild {
		return
	}
	r := refusal{node: node, allowed: allowed, l: l}
	r.host(was, now)
	r.replacing(fieldVMID, was.VMID, now.VMID)
	r.replacing(fieldEFI, orNone(was.EFIDisk), orNone(now.EFIDisk))
	r.replacing(fieldTPM, orNone(was.TPM), orNone(now.TPM))
	if was.System != now.System {
		r.impossible("image", "the system on the disk is %s; %s would have to be installed anew", was.System, now.System)
	}
	for _, slot := range slices.Sorted(maps.Keys(was.Disks)) {
		r.disk(slot, was.Disks[slot], now.Disks)
	}
}

type refusal struct {
	node    string
	allowed []string
	l       *check.List
}

func (r refusal) host(was, now Identity) {
	switch {
	case was.Host == now.Host || r.permitted(fieldHost):
	case was.HA && now.HA:
		r.l.Addf(fieldHost, "was %s, is now %s: with ha Proxmox VE chooses the host; migrate the VM there, or remove ha first",
			was.Host, now.Host)
	case !now.Migrate:
		r.replacing(fieldHost, was.Host, now.Host)
	case len(was.Fixed) > 0:
		for _, reason := range was.Fixed {
			r.l.Addf(fieldHost, "was %s, is now %s: the VM cannot move live, since %s", was.Host, now.Host, reason)
		}
	}
}

func (r refusal) replacing(field string, was, now any) {
	if was == now || r.permitted(field) {
		return
	}
	r.l.Addf(field, "was %v, is now %v: this replaces the VM and all data on its disks; "+
		"permit it with lifecycle.allowReplace: {%s: [%s]}", was, now, r.node, field)
}

func (r refusal) impossible(field, format string, args ...any) {
	r.l.Addf(field, "%s; to have the node rebuilt, raise lifecycle.replace: {%s: <number>}", fmt.Sprintf(format, args...), r.node)
}

func (r refusal) disk(slot string, was Disk, disks map[string]Disk) {
	now, there := disks[slot]
	if !there {
		what := "was removed"
		for other, d := range disks {
			if d.Field == was.Field {
				what = "was moved to " + other
			}
		}
		r.impossible(was.Field, "the disk at %s %s: Proxmox VE's provider removes no disk, and the %d GiB on it would be lost",
			slot, what, was.Size)

		return
	}
	if now.Size < was.Size {
		r.impossible(was.Field+".size", "was %d GiB, is now %d GiB: a disk cannot shrink, since what is at its end would be lost",
			was.Size, now.Size)
	}
	if now.Format != was.Format {
		r.impossible(was.Field+".format", "was %s, is now %s: the format of an existing disk stays", was.Format, now.Format)
	}
	if now.Kept != was.Kept {
		r.impossible(was.Field+".keepOnRebuild", "was %t, is now %t: the disk would change its owner, and its data would be lost",
			was.Kept, now.Kept)
	}
}

// permitted says whether the stack lets an edit of the field replace the VM.
func (r refusal) permitted(field string) bool {
	return slices.Contains(r.allowed, field) || slices.Contains(r.allowed, "*")
}

func orNone(s string) string {
	if s == "" {
		return "none"
	}

	return s
}
