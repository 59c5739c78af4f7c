// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package vms

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/talos-proxmox/talos-proxmox/internal/rules/scope"
	"github.com/talos-proxmox/talos-proxmox/spec"
)

// driveName is the link of a SCSI disk by its slot.
var driveName = regexp.MustCompile(`^scsi-0QEMU_QEMU_HARDDISK_drive-scsi([0-9]+)$`)

// linkParts lists parts of links below /dev/disk, with the bus whose disks have them; "" where none of a VM's buses gives such a name.
var linkParts = map[string]map[string]string{
	"by-id":   {"scsi-": "scsi", "ata-": "sata", "virtio-": "virtio", "nvme-": "", "usb-": "", "wwn-": ""},
	"by-path": {"-scsi-": "scsi", "-ata-": "sata", "-nvme-": "", "-usb-": ""},
}

// busOfLink returns on which bus a disk has a link, and whether that can be told.
func busOfLink(kind, name string) (bus string, known bool) {
	for part, bus := range linkParts[kind] {
		if kind == "by-id" && strings.HasPrefix(name, part) || kind == "by-path" && strings.Contains(name, part) {
			return bus, true
		}
	}

	return "virtio", kind == "by-path" // by the path of its PCI device alone
}

// diskLink checks that the OS disk has the link below /dev/disk at which Talos is to be installed.
func (r *rules) diskLink(path, link string, n spec.NamedNode) {
	kind, name, _ := strings.Cut(link, "/")
	device, right := "/dev/disk/"+link, spec.DevicePath(*n.OSDisk)
	if links := n.OSDisk.GuestLinks(); len(links) > 0 {
		right = links[0]
	}
	linked, known := busOfLink(kind, name)
	of := func(d spec.DataDisk) bool { return slices.Contains(d.GuestLinks(), device) }
	switch bus := *n.OSDisk.Type; {
	case slices.Contains([]string{"by-uuid", "by-label", "by-partuuid", "by-partlabel"}, kind):
		r.Addf(path, "%s names what is on a disk, and a new disk has nothing on it: write %s", device, right)
	case r.Wrong(scope.NodePath(n) + ".osDisk"), n.GPU != nil, slices.ContainsFunc(n.DataDisks(), of):
		// A controller that is passed through brings disks of its own; a data disk is told as such.
	case known && linked != bus:
		r.Addf(path, "%s is no name of a disk on %s, where the OS disk is: write %s", device, bus, right)
	case kind == "by-id" && wrongSlot(name, n.OSDisk),
		kind == "by-id" && linked == "virtio" && known && name != "virtio-"+spec.Value(n.OSDisk.Serial):
		r.Addf(path, "%s is no name that a disk of the VM has: write %s", device, right)
	}
}

// wrongSlot reports whether a link names another slot than the disk's.
func wrongSlot(name string, d *spec.Disk) bool {
	m := driveName.FindStringSubmatch(name)

	return m != nil && m[1] != fmt.Sprint(*d.UnitNumber)
}
