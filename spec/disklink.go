// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package spec

import (
	"crypto/sha256"
	"fmt"
)

// MaxSerial is the longest serial number of a disk that QEMU passes on whole, in bytes.
const MaxSerial = 20

// systemSerial is the serial number of an OS disk on a bus where nothing else names it.
const systemSerial = "talos-system"

// GuestLinks returns the links by which the guest of a VM finds the disk, the surest first; none where nothing
// identifies it. Names such as /dev/sda follow the order in which the kernel finds the disks, and Talos publishes no
// serial number of SCSI and SATA disks, so links are what holds on every bus.
//
// A SCSI disk answers with the name of its drive; until QEMU 10 (Proxmox VE 9) with its serial number instead, where
// it has one.
func (d Disk) GuestLinks() []string {
	switch serial := Value(d.Serial); {
	case Value(d.Type) == "scsi":
		const prefix = "/dev/disk/by-id/scsi-0QEMU_QEMU_HARDDISK_"
		links := []string{fmt.Sprintf("%sdrive-scsi%d", prefix, Value(d.UnitNumber))}
		if serial != "" {
			links = append(links, prefix+serial)
		}

		return links
	case serial == "":
		return nil
	case *d.Type == "virtio":
		return []string{"/dev/disk/by-id/virtio-" + serial}
	default:
		return []string{"/dev/disk/by-id/ata-QEMU_HARDDISK_" + serial}
	}
}

// fillLinks makes the disks of a VM known to its guest: where a bus names them by their serial number alone, disks
// that Talos installs on or mounts get one.
func fillLinks(n *NamedNode) {
	if n.InstallDisk == nil {
		if n.OSDisk.GuestLinks() == nil {
			setDefault(&n.OSDisk.Serial, systemSerial)
		}
		setDefault(&n.InstallDisk, n.OSDisk.GuestLinks()[0])
	}
	for _, name := range sortedKeys(n.Disks) {
		disk := n.Disks[name]
		if disk.Mountpoint == nil || disk.GuestLinks() != nil {
			continue
		}
		serial := name
		if sum := sha256.Sum256([]byte(name)); len(serial) > MaxSerial {
			serial = fmt.Sprintf("%s%x", name[:MaxSerial-8], sum[:4])
		}
		disk.Serial = &serial
		n.Disks[name] = disk
	}
}
