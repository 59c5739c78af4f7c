// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package vms

import (
	"path"
	"strings"

	"github.com/talos-proxmox/talos-proxmox/internal/check"
	"github.com/talos-proxmox/talos-proxmox/internal/rules/scope"
	"github.com/talos-proxmox/talos-proxmox/spec"
)

// lastUnit is the highest slot of each bus, and maxDisks how many disks the provider can attach.
var lastUnit = map[string]int{"scsi": 30, "virtio": 15, "sata": 5}

const maxDisks = 14

// unlinked is what is wrong with a serial number of a SCSI disk that Talos has to find by one link.
const unlinked = "renames the disk in the guest on Proxmox VE 8 and not on 9, so Talos may not find it: remove it, " +
	"or use type virtio or sata"

// disks checks the OS disk and the data disks.
func (r *rules) disks(at string, n spec.NamedNode) {
	if size := *n.OSDisk.Size; size < OSDiskSize {
		r.Addf(at+".osDisk.size", "%d GiB is too small for Talos: use at least %d GiB", size, OSDiskSize)
	}
	if e := r.Config.Talos.EphemeralMaxSize; e != nil && *e > *n.OSDisk.Size {
		r.Addf("talos.ephemeralMaxSize", "%d GiB is more than an OS disk of %d GiB: lower it", *e, *n.OSDisk.Size)
	}
	for name, used := range map[string]bool{
		"mountpoint": n.OSDisk.Mountpoint != nil, "keepOnRebuild": *n.OSDisk.KeepOnRebuild,
		"filesystem": n.OSDisk.Filesystem != nil,
	} {
		if used && !r.Wrong(at+".osDisk."+name) {
			r.Addf(at+".osDisk."+name, "is for data disks: remove it")
		}
	}
	r.disk(at+".osDisk", n, *n.OSDisk)
	if links := n.OSDisk.GuestLinks(); len(links) > 1 && *n.InstallDisk == links[0] && !r.Wrong(at+".osDisk.serial") {
		r.Addf(at+".osDisk.serial", unlinked)
	}
	if len(n.Disks)+1 > maxDisks {
		r.Addf(at+".disks", "%d data disks are too many: the most is %d", len(n.Disks), maxDisks-1)
	}

	r.dataDisks(at, n)
	r.slotsSaid(at, n)
}

// dataDisks checks the data disks, and that no two have what only one can have.
func (r *rules) dataDisks(at string, n spec.NamedNode) {
	kept := false
	slots := map[string]string{n.OSDisk.Interface(): "osDisk"}
	mounts, serials := map[string]string{}, map[string]string{}
	for _, name := range scope.SortedKeys(n.Disks) {
		disk, where := n.Disks[name], check.Key(at+".disks", name)
		r.BlockName(where, name)
		r.disk(where, n, disk)
		if disk.Size == nil {
			r.Addf(where+".size", "is required: write it in GiB")
		}
		kept = kept || *disk.KeepOnRebuild
		if *disk.KeepOnRebuild && n.DataVMID == nil {
			r.Addf(where+".keepOnRebuild", "needs the node's dataVmId, the id of the VM that keeps the disk")
		}
		r.clash(where+".unitNumber", slots, disk.Interface(), name, "slot")
		if disk.Mountpoint != nil {
			r.clash(where+".mountpoint", mounts, *disk.Mountpoint, name, "mountpoint")
			if path.Dir(*disk.Mountpoint) != "/var/mnt" && len(disk.GuestLinks()) > 1 {
				r.Addf(where+".serial", unlinked)
			}
		} else if disk.Filesystem != nil {
			r.Addf(where+".filesystem", "is for a disk that Talos formats and mounts: give the disk a mountpoint, or remove it")
		}
		if disk.Serial != nil {
			r.clash(where+".serial", serials, *disk.Serial, name, "serial number")
		}
	}
	if n.DataVMID != nil && !kept {
		r.Addf(at+".dataVmId", "is the VM of disks that are kept on rebuild, and no disk has keepOnRebuild: set it on one, or remove the id")
	}
}

// clash records a second use of what only one disk can have.
func (r *rules) clash(path string, taken map[string]string, what, name, kind string) {
	if other, twice := taken[what]; twice {
		r.Addf(path, "%s is the %s of %s: choose another", what, kind, other)

		return
	}
	taken[what] = name
}

// slotsSaid demands unit numbers where there are several data disks: by name alone, a new disk would
// move the others to other slots.
func (r *rules) slotsSaid(at string, n spec.NamedNode) {
	said, ok := r.Said.Node(n.Name)
	if !ok || len(said.Disks) < 2 {
		return
	}
	for _, name := range scope.SortedKeys(said.Disks) {
		if said.Disks[name].UnitNumber == nil {
			r.Addf(check.Key(at+".disks", name)+".unitNumber",
				"is required where a node has several data disks, so that none moves when another comes or goes")
		}
	}
}

// disk checks one disk by itself.
func (r *rules) disk(at string, n spec.NamedNode, d spec.Disk) {
	bus := *d.Type
	if last, ok := lastUnit[bus]; ok && *d.UnitNumber > last {
		r.Addf(at+".unitNumber", "%d is too large: the last slot on %s is %d", *d.UnitNumber, bus, last)
	}
	r.Datastore(at+".datastore", d.Datastore)
	r.speedFits(at+".speed", d.Speed)
	r.bus(at, n, d, bus)
	if d.Serial != nil && !scope.SerialForm.MatchString(*d.Serial) {
		r.Addf(at+".serial",
			"%q is no serial number: use up to %d letters, digits, dots, dashes and underscores", *d.Serial, spec.MaxSerial)
	}
	if m := d.Mountpoint; m != nil && (path.Clean(*m) != *m || !strings.HasPrefix(*m, "/var/")) && !strings.HasSuffix(at, ".osDisk") {
		r.Addf(at+".mountpoint", "%q cannot be mounted: Talos mounts disks below /var/ only", *m)
	}
	if d.Mountpoint != nil {
		r.volumeName(at+".mountpoint", *d.Mountpoint)
	}
}

// bus checks what only some buses can do.
func (r *rules) bus(at string, n spec.NamedNode, d spec.Disk, bus string) {
	if node := check.Head(at, 2); *d.Iothread && bus == "scsi" && *n.SCSIHardware != "virtio-scsi-single" && !r.Wrong(node+".scsiHardware") {
		r.List.Between(at+".iothread", node+".scsiHardware",
			"iothread needs scsiHardware virtio-scsi-single, and it is %s: change one of them", *n.SCSIHardware)
	}
	if *d.Iothread && bus == "sata" {
		r.Addf(at+".iothread", "does not exist on sata: use scsi or virtio, or set it to false")
	}
	if *d.SSD && bus == "virtio" {
		r.Addf(at+".ssd", "does not exist on virtio: use scsi or sata, or set it to false")
	}
	if cache := *d.Cache; *d.AIO == "native" && cache != "none" && cache != "directsync" {
		r.Addf(at+".aio", "native needs cache none or directsync, and cache is %s: change one of them", cache)
	}
}
