// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package vm

import (
	"fmt"
	"maps"
	"slices"

	"github.com/talos-proxmox/talos-proxmox/internal/check"
)

const (
	fieldHost = "host"
	fieldVMID = "vmId"
	fieldEFI  = "efiDisk"
	fieldTPM  = "tpm"
)

// Refuse records every edit from was to now that would replace the VM of the node without
// permission, that would lose data, or that cannot be done. A rebuild that the user asked for brings a new
// VM, and thus permits all that neither touches the disks which outlive it nor replaces VMs by itself.
func Refuse(node string, was, now Identity, allowed []string, l *check.List) {
	r := refusal{node: node, allowed: allowed, l: l}
	r.keptDisks(was, now)
	r.limits(was, now)
	if was.Rebuild != now.Rebuild {
		r.rebuilt(was, now)

		return
	}
	r.host(was, now)
	r.replacing(fieldVMID, was.VMID, now.VMID)
	r.replacing(fieldEFI, orNone(was.EFIDisk), orNone(now.EFIDisk))
	r.replacing(fieldTPM, orNone(was.TPM), orNone(now.TPM))
	r.store("efiDisk.datastore", "UEFI variables", was.EFIDatastore, now.EFIDatastore)
	r.store("tpm.datastore", "TPM state, and what is encrypted with it,", was.TPMDatastore, now.TPMDatastore)
	if was.Role != now.Role {
		r.impossible("role", "was %s, is now %s: a node cannot change its role", was.Role, now.Role)
	}
	if was.System != "" && was.System != now.System {
		r.impossible("image", "the system on the disk is %s; %s would have to be reinstalled", was.System, now.System)
	}
	if was.Address != now.Address {
		r.impossible("networks", "the node's address was %s, is now %s: etcd and Kubernetes know the node by it",
			orNone(was.Address), orNone(now.Address))
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

// keptDisks refuses what a rebuild cannot do either: the disks that outlive the VM stay what and where
// they are.
func (r refusal) keptDisks(was, now Identity) {
	if was.DataVMID == 0 {
		return
	}
	if was.Host != now.Host {
		r.l.Addf(fieldHost, "was %s, is now %s: the node's kept disks (keepOnRebuild) stay on their host", was.Host, now.Host)
	}
	if now.DataVMID != 0 && was.DataVMID != now.DataVMID {
		r.l.Addf("dataVmId", "was %d, is now %d: the VM that holds the kept disks would be replaced, and they with it",
			was.DataVMID, now.DataVMID)
	}
	for _, slot := range slices.Sorted(maps.Keys(was.Disks)) {
		disk := was.Disks[slot]
		if !disk.Kept {
			continue
		}
		after, there := now.Disks[slot]
		if !there || !after.Kept || after.Size < disk.Size || after.Format != disk.Format {
			r.l.Addf(disk.Field, "is kept on rebuild (keepOnRebuild) with %d GiB as %s at %s, and must stay so: "+
				"its data would be lost; take the data elsewhere and remove the node", disk.Size, disk.Format, slot)
		}
	}
}

// rebuilt refuses what a rebuild brings only where the stack permits the edit too. The provider would replace a
// VM for these fields, whoever edited them, in the stack file or by hand: so it does not see their edits
// unless they are permitted.
func (r refusal) rebuilt(was, now Identity) {
	for _, f := range []struct {
		field, was, now string
		counts          bool
	}{
		{fieldHost, was.Host, now.Host, !now.Migrate && !(was.HA && now.HA)},
		{fieldEFI, placed(was.EFIDisk, was.EFIDatastore), placed(now.EFIDisk, now.EFIDatastore), true},
		{fieldTPM, placed(was.TPM, was.TPMDatastore), placed(now.TPM, now.TPMDatastore), true},
	} {
		if f.counts && f.was != f.now && !r.permitted(f.field) {
			r.l.Addf(f.field, "was %s, is now %s: for the rebuilt VM to have it, permit the edit too, with "+
				"lifecycle.allowReplace: {%s: [%s]}", f.was, f.now, r.node, f.field)
		}
	}
}

// limits refuses to take the last limit of a disk's speed away. The provider sees a difference between
// no limits and its own notion of none for ever, so none are left out of what it compares, and it would
// leave those that are.
func (r refusal) limits(was, now Identity) {
	for _, slot := range slices.Sorted(maps.Keys(was.Disks)) {
		if after, there := now.Disks[slot]; there && was.Disks[slot].Limited && !after.Limited {
			r.l.Addf(was.Disks[slot].Field+".speed", "was taken away, and the provider would leave the limits as they are: "+
				"write one that never binds in its place, speed: {iopsRead: 1000000}")
		}
	}
}

func (r refusal) host(was, now Identity) {
	switch {
	case was.Host == now.Host || was.DataVMID != 0 || r.permitted(fieldHost):
	case was.HA && now.HA:
		r.l.Addf(fieldHost, "was %s, is now %s: with ha Proxmox VE chooses the host; migrate the VM there, or remove ha first",
			was.Host, now.Host)
	case !now.Migrate:
		r.replacing(fieldHost, was.Host, now.Host)
	default:
		for _, reason := range was.Fixed {
			r.l.Addf(fieldHost, "was %s, is now %s: the VM cannot move live, since %s", was.Host, now.Host, reason)
		}
	}
}

func (r refusal) replacing(field string, was, now any) {
	if was == now || r.permitted(field) {
		return
	}
	r.l.Addf(field, "was %v, is now %v: this replaces the VM and loses what is on its disks; "+
		"permit it with lifecycle.allowReplace: {%s: [%s]}", was, now, r.node, field)
}

// store refuses to move a small volume, which the provider makes anew instead.
func (r refusal) store(field, what, was, now string) {
	if was != "" && now != "" && was != now {
		r.impossible(field, "was %s, is now %s: the provider makes an empty volume there, and the %s would be lost", was, now, what)
	}
}

func (r refusal) impossible(field, format string, args ...any) {
	r.l.Addf(field, "%s; to have the node rebuilt, raise lifecycle.replace: {%s: <number>}", fmt.Sprintf(format, args...), r.node)
}

func (r refusal) disk(slot string, was Disk, disks map[string]Disk) {
	if was.Kept {
		return
	}
	now, there := disks[slot]
	if !there {
		what := "was removed"
		for other, d := range disks {
			if d.Field == was.Field {
				what = "was moved to " + other
			}
		}
		r.impossible(was.Field, "the disk at %s %s: the provider removes no disk, and the %d GiB on it would be lost",
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
	if now.Kept {
		r.impossible(was.Field+".keepOnRebuild", "is now true: the disk would get another owner, and its data would be lost")
	}
}

// permitted reports whether the stack lets an edit of the field replace the VM.
func (r refusal) permitted(field string) bool {
	return slices.Contains(r.allowed, field) || slices.Contains(r.allowed, "*")
}

func orNone(s string) string {
	if s == "" {
		return "none"
	}

	return s
}

// placed returns a volume with its datastore, "none" when there is none.
func placed(volume, datastore string) string {
	if volume == "" || datastore == "" {
		return orNone(volume)
	}

	return volume + " at " + datastore
}
