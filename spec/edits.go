// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package spec

// Effect tells what an edit of a setting does to what runs already.
type Effect string

const (
	// EffectNone changes nothing that exists: it counts for what is created from then on.
	EffectNone Effect = "later"
	// EffectInPlace changes it without disturbing the node.
	EffectInPlace Effect = "in place"
	// EffectReboot changes it in place and reboots the VM, one node at a time.
	EffectReboot Effect = "reboot"
	// EffectUpgrade rolls the node to another system image in place, one node at a time.
	EffectUpgrade Effect = "upgrade"
	// EffectReplace replaces the VM: refused unless lifecycle.allowReplace permits it.
	EffectReplace Effect = "replace"
	// EffectRefused is refused, since data would be lost or the node would not be found again;
	// lifecycle.replace rebuilds the node in an orderly way.
	EffectRefused Effect = "refused"
)

// Edit tells what an edit of one setting does.
type Edit struct {
	// Effect of the edit.
	Effect Effect
	// Note says when it is otherwise; empty when it never is.
	Note string
}

// EditEffects says for every setting of a node and of an image what editing it does. Settings are
// named as in a stack file, with * for the name of a disk or network and [] for an element of a list:
// "nodes.*.disks.*.size".
func EditEffects() map[string]Edit {
	all := map[string]Edit{}
	for prefix, edits := range map[string]map[string]Edit{
		"nodes.*.":            nodeEdits(),
		"nodes.*.networks.*.": networkEdits(),
		"nodes.*.osDisk.":     diskEdits(),
		"nodes.*.disks.*.":    diskEdits(),
		"images.*.":           imageEdits(),
	} {
		for field, edit := range edits {
			all[prefix+field] = edit
		}
	}
	setAll(all, Edit{EffectRefused, "is for data disks"}, "nodes.*.osDisk.mountpoint", "nodes.*.osDisk.keepOnRebuild",
		"nodes.*.osDisk.filesystem")

	return all
}

// setAll gives each of the fields the same edit.
func setAll(edits map[string]Edit, edit Edit, fields ...string) {
	for _, field := range fields {
		edits[field] = edit
	}
}

func nodeEdits() map[string]Edit {
	edits := map[string]Edit{
		"role": {EffectRefused, ""},
		"host": {EffectInPlace, "the VM moves live; without migrate it is replaced, and refused is what keeps a VM " +
			"from moving: a passed-through device, an ISO on a local datastore, disks kept on rebuild"},
		"vmId":  {EffectReplace, ""},
		"size":  {EffectReboot, "what the fields do that differ in the two sizes"},
		"image": {EffectUpgrade, "refused when platform, architecture or secure boot differ"},
		"zone":  {EffectInPlace, ""}, "allowSharedHost": {EffectNone, ""},
		"bios":    {EffectReplace, "the UEFI variables come or go; permitted by efiDisk"},
		"efiDisk": {EffectReplace, ""}, "efiDisk.datastore": {EffectRefused, ""}, "efiDisk.type": {EffectReplace, ""},
		"efiDisk.preEnrolledKeys": {EffectReplace, ""}, "efiDisk.format": {EffectReplace, ""},
		"tpm": {EffectReplace, ""}, "tpm.datastore": {EffectRefused, ""}, "tpm.version": {EffectReplace, ""},
		"dataVmId": {EffectRefused, "also when the node is rebuilt"},
		"hostname": {EffectInPlace, "the node joins Kubernetes under the new name"},
		"patches":  {EffectInPlace, "Talos reboots where what is patched needs it"},
		"networks": {EffectReboot, "refused when the node's address changes"},
		"disks":    {EffectInPlace, "a disk is added; removing one is refused"},
		"osDisk":   {EffectInPlace, "as its fields say"}, "installDisk": {EffectNone, ""},
	}
	setAll(edits, Edit{EffectReboot, ""},
		"cpu", "sockets", "cpuType", "cpuFlags", "cpuUnits", "cpuLimit", "cpuAffinity", "numa",
		"numaNodes", "numaNodes[].cpus", "numaNodes[].memory", "numaNodes[].hostNodes", "numaNodes[].policy",
		"memory", "balloon", "hugepages", "keepHugepages", "sharedMemory", "machine", "scsiHardware", "osType",
		"agent", "agentTimeout", "watchdog", "watchdog.model", "watchdog.action", "vga", "vga.type", "vga.memory",
		"vga.clipboard", "bootOrder", "serialConsole", "tablet", "acpi", "kvmArguments", "cloudInitDatastore",
		"gpu", "gpu.mapping", "gpu.devices", "gpu.pcie", "gpu.romBar", "gpu.xvga", "gpu.mdev", "gpu.romFile",
		"usb", "usb[].mapping", "usb[].host", "usb[].usb3")
	setAll(edits, Edit{EffectReboot, "the mapping is edited in place where the device had one"},
		"gpu.identities", "gpu.identities.*.id", "gpu.identities.*.subsystemId", "gpu.identities.*.iommuGroup")
	setAll(edits, Edit{EffectInPlace, ""},
		"onBoot", "startup", "startup.order", "startup.upDelay", "startup.downDelay", "tags", "description", "pool",
		"protection", "hookScript", "gpu.vendor", "gpu.taint", "ha", "ha.group", "ha.state", "ha.maxRestart",
		"ha.maxRelocate", "ha.comment", "migrate", "cdRom", "timeouts", "timeouts.create", "timeouts.migrate",
		"timeouts.reboot", "timeouts.shutdown", "timeouts.start", "timeouts.stop",
		"labels", "annotations", "taints", "kernelModules", "sysctls")
	setAll(edits, Edit{EffectInPlace, "Talos reboots where what is patched needs it"}, "patches[].inline", "patches[].file")

	return edits
}

func networkEdits() map[string]Edit {
	edits := map[string]Edit{"routes": {EffectInPlace, ""}}
	setAll(edits, Edit{EffectReboot, ""}, "index", "bridge", "vlan", "mac", "model", "mtu", "queues", "rateLimit", "firewall",
		"gateway", "gateway6")
	setAll(edits, Edit{EffectReboot, "refused on the network by which the node is known"},
		"subnet", "address", "subnet6", "address6", "dhcp")
	setAll(edits, Edit{EffectInPlace, ""}, "routes[].network", "routes[].gateway", "routes[].metric")

	return edits
}

func diskEdits() map[string]Edit {
	edits := map[string]Edit{
		"size":      {EffectInPlace, "growing; shrinking is refused, and a disk kept on rebuild is seen larger after a reboot"},
		"datastore": {EffectReboot, "the disk is moved while the VM is off"},
		"type":      {EffectRefused, ""}, "unitNumber": {EffectRefused, ""}, "format": {EffectRefused, ""},
		"aio":           {EffectReboot, ""},
		"keepOnRebuild": {EffectRefused, ""},
		"mountpoint":    {EffectInPlace, ""},
		"filesystem":    {EffectNone, "counts when Talos formats the disk"},
	}
	setAll(edits, Edit{EffectInPlace, "the guest sees it after its next start"},
		"iothread", "cache", "discard", "ssd", "serial")
	edits["speed"] = Edit{EffectInPlace, "taking the last limit away is refused"}
	setAll(edits, Edit{EffectInPlace, ""}, "backup", "replicate", "speed.read", "speed.readBurst", "speed.write",
		"speed.writeBurst", "speed.iopsRead", "speed.iopsWrite")

	return edits
}

func imageEdits() map[string]Edit {
	edits := map[string]Edit{
		"platform": {EffectRefused, ""}, "arch": {EffectRefused, ""}, "secureBoot": {EffectRefused, ""},
		"boot": {EffectReboot, "the ISO enters or leaves its drive; the disk stays"},
	}
	setAll(edits, Edit{EffectUpgrade, ""}, "extensions", "kernelArgs", "meta", "overlay", "overlay.name", "overlay.image",
		"overlay.options", "bootloader", "schematicFile")
	setAll(edits, Edit{EffectInPlace, ""}, "factoryUrl", "installerMirror", "register", "datastore", "datastoreHost")
	setAll(edits, Edit{EffectNone, ""}, "isoMirror", "diskFormat", "checksum")

	return edits
}
