// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package hardware

import (
	"fmt"
	"reflect"
	"regexp"
	"slices"

	"github.com/talos-proxmox/talos-proxmox/internal/check"
	"github.com/talos-proxmox/talos-proxmox/internal/image"
	"github.com/talos-proxmox/talos-proxmox/spec"
)

// Validate records what Proxmox VE or its provider would refuse, or silently not do, with the VM of
// a complete node. path is the node's.
func Validate(path string, n spec.NamedNode, img spec.Image, proxmox spec.Proxmox, l *check.List) {
	v := validation{path: path, node: n, image: img, proxmox: proxmox, l: l}
	v.access()
	v.memory()
	v.passthrough()
	v.disks()
	v.devices()
	v.firmware()
	v.highAvailability()
}

type validation struct {
	path    string
	node    spec.NamedNode
	image   spec.Image
	proxmox spec.Proxmox
	l       *check.List
}

func (v validation) addf(field, format string, args ...any) {
	v.l.Addf(check.Join(v.path, field), format, args...)
}

// root says whether Proxmox is asked as root@pam, with a password: a token of root's is not root.
func (v validation) root() bool {
	return v.proxmox.APIToken == nil && spec.Or(v.proxmox.Username, "") == "root@pam"
}

// access holds options against what the credentials may do.
func (v validation) access() {
	n := v.node
	needsRoot := map[string]bool{
		"cpuAffinity":  n.CPUAffinity != nil,
		"kvmArguments": n.KVMArguments != nil,
		"hookScript":   n.HookScript != nil,
		"image":        ARM(v.image),
	}
	for i, usb := range n.USB {
		needsRoot[check.Index("usb", i)+".host"] = usb.Host != nil
	}
	if n.GPU != nil {
		needsRoot["gpu.romFile"] = n.GPU.ROMFile != nil
		for i, address := range n.GPU.Devices {
			_, known := n.GPU.Identities[address]
			needsRoot[check.Index("gpu.devices", i)] = !known
		}
	}
	for field, needed := range needsRoot {
		if !needed || v.root() {
			continue
		}
		v.addf(field, "needs proxmox.username root@pam with its password: Proxmox VE lets no API token do this%s", v.wayOut(field))
	}
	if !image.ISO(v.image) && v.proxmox.SSH == nil {
		v.addf("image", "boots by importing a disk image, which needs proxmox.ssh: the provider does it on the host; "+
			"or set the image's boot to iso")
	}
}

// wayOut names what works with an API token instead.
func (v validation) wayOut(field string) string {
	if _, err := fmt.Sscanf(field, "gpu.devices[%d]", new(int)); err == nil {
		return "; say what the device is in gpu.identities (lspci -nnv shows it) and a resource mapping is made for it, " +
			"or name an existing one with gpu.mapping"
	}
	if _, err := fmt.Sscanf(field, "usb[%d].host", new(int)); err == nil {
		return "; name a resource mapping instead"
	}

	return ""
}

func (v validation) memory() {
	n := v.node
	if n.Hugepages != nil && !spec.Or(n.NUMA, false) {
		v.addf("hugepages", "need numa: true")
	}
	if n.KeepHugepages != nil && n.Hugepages == nil {
		v.addf("keepHugepages", "has no effect without hugepages")
	}
	if len(n.NUMANodes) > 0 && !spec.Or(n.NUMA, false) {
		v.addf("numaNodes", "need numa: true")
	}
	total := spec.MiB(0)
	for _, node := range n.NUMANodes {
		total += node.Memory
	}
	if len(n.NUMANodes) > 0 && total != spec.Or(n.Memory, 0) {
		v.addf("numaNodes", "have %d MiB together, but memory is %d MiB", total, spec.Or(n.Memory, 0))
	}
	if balloon := spec.Or(n.Balloon, 0); balloon > spec.Or(n.Memory, 0) {
		v.addf("balloon", "%d MiB is more than memory, %d MiB", balloon, spec.Or(n.Memory, 0))
	}
}

var (
	bdf   = regexp.MustCompile(`^[0-9a-f]{4}:[0-9a-f]{2}:[0-9a-f]{2}(\.[0-7])?$`)
	pciID = regexp.MustCompile(`^[0-9a-f]{4}:[0-9a-f]{4}$`)
)

func (v validation) passthrough() {
	for i, usb := range v.node.USB {
		if (usb.Mapping == nil) == (usb.Host == nil) {
			v.addf(check.Index("usb", i), "needs exactly one of mapping and host")
		}
	}
	gpu := v.node.GPU
	if gpu == nil {
		return
	}
	if (gpu.Mapping == nil) == (len(gpu.Devices) == 0) {
		v.addf("gpu", "needs exactly one of mapping and devices")
	}
	if spec.Or(gpu.PCIe, true) && spec.Or(v.node.Machine, "q35") != "q35" {
		v.addf("gpu.pcie", "needs machine q35")
	}
	for i, address := range gpu.Devices {
		if !bdf.MatchString(address) {
			v.addf(check.Index("gpu.devices", i), "%q is no PCI address: write one such as 0000:01:00.0", address)
		}
	}
	for address, identity := range gpu.Identities {
		if !slices.Contains(gpu.Devices, address) {
			v.addf("gpu.identities", "%q is not among gpu.devices", address)
		}
		if !pciID.MatchString(identity.ID) || identity.SubsystemID != nil && !pciID.MatchString(*identity.SubsystemID) {
			v.addf("gpu.identities", "%q: write ids as vendor:device, such as 10de:2684", address)
		}
	}
}

func (v validation) disks() {
	n := v.node
	slots := map[string]string{}
	all := []spec.DataDisk{{Disk: *n.OSDisk}}
	for i, disk := range append(all, n.DataDisks()...) {
		field := check.Join("disks", disk.Name)
		if i == 0 {
			field = "osDisk"
		}
		slot := disk.Interface()
		if other, taken := slots[slot]; taken {
			v.addf(field+".unitNumber", "%s already is the place of %s", slot, other)
		}
		slots[slot] = field
		if slot == CloudInitInterface(v.image) {
			v.addf(field+".unitNumber", "%s is the place of the cloud-init drive", slot)
		}
		v.disk(field, disk.Disk)
		if disk.Speed != nil && !reflect.DeepEqual(disk.Speed, n.OSDisk.Speed) || disk.Speed == nil && n.OSDisk.Speed != nil {
			v.addf(field+".speed", "must be the same as osDisk.speed: the provider gives the first disk's limits to all")
		}
	}
	if spec.Or(n.OSDisk.KeepOnRebuild, false) {
		v.addf("osDisk.keepOnRebuild", "is for data disks: a rebuilt node installs its system anew")
	}
	if len(KeptDisks(n)) > 0 && n.DataVMID == nil {
		v.addf("dataVmId", "is required with keepOnRebuild: the disks belong to a VM with that id, which never starts")
	}
	if n.DataVMID != nil && n.VMID != nil && *n.DataVMID == *n.VMID {
		v.addf("dataVmId", "%d is the node's own vmId", *n.DataVMID)
	}
	const most = 14
	if len(n.Disks)+1 > most {
		v.addf("disks", "are %d with the OS disk: a VM has at most %d", len(n.Disks)+1, most)
	}
}

// disk checks what depends on the bus.
func (v validation) disk(field string, d spec.Disk) {
	bus, unit := spec.Or(d.Type, "scsi"), spec.Or(d.UnitNumber, 0)
	if most := map[string]int{"scsi": 30, "virtio": 15, "sata": 5}[bus]; unit > most {
		v.addf(field+".unitNumber", "%s has places 0 to %d, got %d", bus, most, unit)
	}
	if bus == "virtio" && spec.Or(d.SSD, false) {
		v.addf(field+".ssd", "is not possible on virtio: use scsi")
	}
	if serial := spec.Or(d.Serial, ""); len(serial) > 20 {
		v.addf(field+".serial", "%q is longer than the 20 bytes that a guest sees", serial)
	}
	if d.Size == nil || *d.Size < 1 {
		v.addf(field+".size", "is required")
	}
}

func (v validation) devices() {
	for i, d := range v.node.Devices() {
		if d.Index != i {
			v.addf(check.Join("networks", d.Name, "index"),
				"is %d, but there are %d devices before it: number them from 0 without a gap", d.Index, i)
		}
	}
	if len(v.node.Networks) == 0 {
		v.addf("networks", "must have at least one network")
	}
}

func (v validation) firmware() {
	n := v.node
	ovmf := spec.Or(n.BIOS, "seabios") == "ovmf"
	if spec.Or(v.image.SecureBoot, false) && !ovmf {
		v.addf("bios", "must be ovmf: the node's image is for secure boot")
	}
	if n.EFIDisk != nil && !ovmf {
		v.addf("efiDisk", "has no effect without bios: ovmf")
	}
	if ARM(v.image) && !ovmf {
		v.addf("bios", "must be ovmf: the node's image is for arm64")
	}
}

func (v validation) highAvailability() {
	ha := v.node.HA
	if ha == nil {
		return
	}
	if ha.Group != nil && spec.Or(v.proxmox.Version, 8) >= 9 {
		v.addf("ha.group", "does not exist in Proxmox VE 9: write an HA rule there instead")
	}
	if image.ISO(v.image) && v.image.DatastoreHost == nil && spec.Or(v.node.CDROM, true) {
		v.addf("ha", "cannot start the VM on another host, since the ISO in its drive is on a local datastore: "+
			"share it (the image's datastoreHost), or set cdRom to false once the node is installed")
	}
	if v.node.GPU != nil && len(v.node.GPU.Devices) > 0 {
		v.addf("ha", "cannot start the VM on another host, since a PCI device of this one is passed through")
	}
}
