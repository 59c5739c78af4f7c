// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package disks

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/siderolabs/talos/pkg/machinery/api/resource/definitions/block"
	blockresource "github.com/siderolabs/talos/pkg/machinery/resources/block"

	"github.com/talos-proxmox/talos-proxmox/lab/site/guest"
)

// imageSize is about the size in bytes of Talos's root file system.
const imageSize = 75 << 20

// Device describes a block device as Talos publishes it.
type Device struct {
	Spec *block.DiskSpec
	// Disk is what the device is, nil when it is a CD drive or a loop device.
	Disk *guest.Disk
}

// Path returns the device's file, "/dev/sda".
func (d Device) Path() string { return d.Spec.GetDevPath() }

// ID returns the device's name, "sda".
func (d Device) ID() string { return strings.TrimPrefix(d.Path(), "/dev/") }

// List returns the block devices of a machine by name.
func List(m *guest.Machine) []Device {
	q35 := strings.Contains(m.Type, "q35")
	next := map[string]int{}
	path := func(prefix string) string {
		next[prefix]++

		return "/dev/" + prefix + string(rune('a'+next[prefix]-1))
	}

	devices := []Device{{Spec: loop()}}
	for _, d := range probed(m.Disks) {
		bus, unit := SplitDevice(d.Device)
		spec := &block.DiskSpec{
			Size: uint64(max(d.Size, 0)), PrettySize: pretty(d.Size), IoSize: 512, SectorSize: 512,
			SubSystem: "/sys/class/block", Rotational: !d.SSD,
		}
		if bus == "virtio" {
			spec.DevPath = path("vd")
			virtio(spec, d, unit, q35)
		} else {
			spec.DevPath, spec.Model, spec.Modalias = path("sd"), "QEMU HARDDISK", "scsi:t-0x00"
			attached(spec, d, bus, unit, q35)
		}
		devices = append(devices, Device{Spec: spec, Disk: d})
	}
	for i, drive := range m.CDDrives {
		devices = append(devices, Device{Spec: cd(i, drive, q35)})
	}
	for i, d := range devices {
		d.Spec.Symlinks = append([]string{"/dev/disk/by-diskseq/" + strconv.Itoa(i+1)}, d.Spec.Symlinks...)
		slices.Sort(d.Spec.Symlinks)
	}
	slices.SortFunc(devices, func(a, b Device) int { return cmp.Compare(a.Path(), b.Path()) })

	return devices
}

// Find returns the device of a file or of a link to it, nil when there is none.
func Find(devices []Device, name string) *Device {
	i := slices.IndexFunc(devices, func(d Device) bool { return d.Path() == name || slices.Contains(d.Spec.GetSymlinks(), name) })
	if i < 0 {
		return nil
	}

	return &devices[i]
}

// SplitDevice splits a drive's key: "scsi", 1.
func SplitDevice(key string) (bus string, unit int) {
	bus = strings.TrimRight(key, "0123456789")
	unit, _ = strconv.Atoi(strings.TrimPrefix(key, bus)) // a drive's key ends in a number

	return bus, unit
}

// probed returns the disks in the order in which the kernel names them. Controllers are probed at the same time:
// where each disk has its own, any of them may come first, and here it is always the last.
func probed(all []*guest.Disk) []*guest.Disk {
	own := slices.DeleteFunc(slices.Clone(all), func(d *guest.Disk) bool { return !ownController(d) })
	slices.Reverse(own)
	out := slices.Clone(all)
	for i, d := range out {
		if ownController(d) {
			out[i], own = own[0], own[1:]
		}
	}

	return out
}

func ownController(d *guest.Disk) bool {
	return strings.HasPrefix(d.Device, "scsi") && d.Controller == "virtio-scsi-single"
}

// loop returns the loop device of the root file system.
func loop() *block.DiskSpec {
	return &block.DiskSpec{
		DevPath: "/dev/loop0", Size: imageSize, PrettySize: pretty(imageSize),
		IoSize: 512, SectorSize: 512, Readonly: true, BusPath: "/virtual", SubSystem: "/sys/class/block",
	}
}

// virtio describes a virtio-blk disk, the only one whose serial number Talos up to 1.13 publishes.
func virtio(spec *block.DiskSpec, d *guest.Disk, unit int, q35 bool) {
	slot, bridge := 10+unit, ""
	if unit > 5 {
		slot, bridge = unit-5, "pci.2"
	}
	path, address := pci(slot, bridge, q35)
	spec.BusPath = fmt.Sprintf("%s/virtio%d", path, unit)
	spec.Modalias, spec.Transport, spec.Serial = "virtio:d00000002v00001AF4", "virtio", d.Serial
	spec.Rotational = true
	spec.Symlinks = []string{"/dev/disk/by-path/pci-" + address, "/dev/disk/by-path/virtio-pci-" + address}
	if d.Serial != "" {
		spec.Symlinks = append(spec.Symlinks, "/dev/disk/by-id/virtio-"+d.Serial)
	}
}

// attached describes a disk on SCSI, SATA or IDE. The kernel has no serial number of them that Talos would read.
func attached(spec *block.DiskSpec, d *guest.Disk, bus string, unit int, q35 bool) {
	if bus != "scsi" {
		ata(spec, bus, unit, d.Serial, "QEMU_HARDDISK", q35)
		spec.Wwid = fmt.Sprintf("t10.ATA     %-40s%-20s", spec.GetModel(), ataSerial(bus, unit, d.Serial, q35))

		return
	}

	spec.Symlinks = []string{"/dev/disk/by-id/scsi-0QEMU_QEMU_HARDDISK_" + d.DeviceID}
	target, lun, host := 0, unit, 2
	path, address := pci(5, "", q35)
	switch d.Controller {
	case "virtio-scsi-pci":
		spec.Transport, path = "virtio", path+"/virtio2"
	case "virtio-scsi-single":
		path, address = pci(unit+1, "pci.3", q35)
		spec.Transport, path, host = "virtio", fmt.Sprintf("%s/virtio%d", path, unit+2), unit+2
	case "megasas":
		spec.Transport = "megaraid_sas"
	default:
		spec.Transport, target, lun = "spi", unit, 0
		if d.Controller == "pvscsi" {
			spec.Transport = "vmw_pvscsi"
		}
	}
	spec.BusPath = fmt.Sprintf("%s/host%d/target%[2]d:0:%[3]d/%[2]d:0:%[3]d:%[4]d", path, host, target, lun)
	spec.Symlinks = append(spec.Symlinks, fmt.Sprintf("/dev/disk/by-path/pci-%s-scsi-0:0:%d:%d", address, target, lun))
}

// cd describes a CD drive with the medium that is in it.
func cd(number int, drive guest.CDDrive, q35 bool) *block.DiskSpec {
	bus, unit := SplitDevice(drive.Device)
	spec := &block.DiskSpec{
		DevPath: "/dev/sr" + strconv.Itoa(number), Size: uint64(max(drive.Size, 0)),
		PrettySize: pretty(drive.Size), IoSize: 512, SectorSize: 512, Readonly: true, Cdrom: true,
		Model: "QEMU DVD-ROM", Modalias: "scsi:t-0x05", SubSystem: "/sys/class/block",
	}
	if bus == "scsi" {
		path, address := pci(5, "", q35)
		spec.BusPath = fmt.Sprintf("%s/virtio2/host2/target2:0:0/2:0:0:%d", path, unit)
		spec.Symlinks, spec.Transport = []string{fmt.Sprintf("/dev/disk/by-path/pci-%s-scsi-0:0:0:%d", address, unit)}, "virtio"
	} else {
		ata(spec, bus, unit, "", "QEMU_DVD-ROM", q35)
	}

	return spec
}

// ata describes what is on SATA or IDE: a q35 board has no IDE, its IDE drives are on its own SATA controller.
func ata(spec *block.DiskSpec, bus string, unit int, serial, model string, q35 bool) {
	path, address := pci(7, "", q35)
	port, device, transport := unit+1, 0, "sata"
	switch {
	case bus == "ide" && q35:
		path, address, port = "/pci0000:00/0000:00:1f.2", "0000:00:1f.2", unit/2+1
	case bus == "ide":
		path, address, transport = "/pci0000:00/0000:00:01.1", "0000:00:01.1", "ata"
		port, device = unit/2+1, unit%2
	}
	spec.Transport = transport
	spec.BusPath = fmt.Sprintf("%s/ata%d/host%d/target%[3]d:0:%[4]d/%[3]d:0:%[4]d:0", path, port, port-1, device)
	spec.Symlinks = []string{
		"/dev/disk/by-id/ata-" + model + "_" + ataSerial(bus, unit, serial, q35),
		fmt.Sprintf("/dev/disk/by-path/pci-%s-ata-%d", address, port),
		fmt.Sprintf("/dev/disk/by-path/pci-%s-ata-%d.%d", address, port, device),
	}
}

// ataSerial returns the serial number that QEMU gives a drive without one: it counts the places of all controllers.
func ataSerial(bus string, unit int, serial string, q35 bool) string {
	if serial != "" {
		return serial
	}
	place := 1 + unit
	switch {
	case bus == "ide" && q35:
		place = 1 + unit/2*2
	case bus == "sata" && q35:
		place = 13 + 2*unit
	case bus == "sata":
		place = 5 + 2*unit
	}

	return fmt.Sprintf("QM%05d", place)
}

// pci returns the path and the address of a slot on the board's first bus, or behind one of its bridges.
func pci(slot int, bridge string, q35 bool) (path, address string) {
	path, bus := "/pci0000:00", 0
	if q35 {
		path, bus = "/pci0000:00/0000:00:1e.0/0000:05:01.0", 6
	}
	switch bridge {
	case "pci.2":
		path += fmt.Sprintf("/0000:%02x:1f.0", bus)
		bus += 2
	case "pci.3":
		path += fmt.Sprintf("/0000:%02x:05.0", bus)
		bus++
	}
	address = fmt.Sprintf("0000:%02x:%02x.0", bus, slot)

	return path + "/" + address, address
}

// pretty returns a size as Talos prints it.
func pretty(size int64) string {
	var spec blockresource.DiskSpec
	spec.SetSize(uint64(max(size, 0)))

	return spec.PrettySize
}
