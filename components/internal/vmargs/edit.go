// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package vmargs

import (
	"slices"

	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
)

// EditMoves reports whether the provider moves a VM to another host to bring its inputs from was to now.
func EditMoves(was, now resource.PropertyMap) bool {
	return !withoutMarks(was["nodeName"]).DeepEquals(withoutMarks(now["nodeName"]))
}

// EditReboots reports whether the provider reboots, or shuts down and starts, a VM to bring its inputs from was to
// now. The gate asks it, so that an edit which disturbs no node does not wait for a turn.
func EditReboots(was, now resource.PropertyMap) bool {
	for _, property := range rebootingProperties() {
		if !withoutMarks(was[property]).DeepEquals(withoutMarks(now[property])) {
			return true
		}
	}
	before := disksBySlot(was)
	for slot, disk := range disksBySlot(now) {
		old, there := before[slot]
		if there && !(withoutMarks(old["aio"]).DeepEquals(withoutMarks(disk["aio"])) &&
			withoutMarks(old["datastoreId"]).DeepEquals(withoutMarks(disk["datastoreId"]))) {
			return true
		}
	}

	return false
}

// WasOff reports whether a VM did not run when its state was read last.
func WasOff(outputs resource.PropertyMap) bool {
	started := withoutMarks(outputs["started"])

	return started.IsBool() && !started.BoolValue()
}

// EditStarts reports whether the provider starts a VM that was off when its state was read last.
func EditStarts(outputs, now resource.PropertyMap) bool {
	started := withoutMarks(now["started"])

	return WasOff(outputs) && started.IsBool() && started.BoolValue()
}

// MissingDisks returns the slots of the disks that a VM has and its inputs do not name, in order.
func MissingDisks(outputs, now resource.PropertyMap) []string {
	wanted := disksBySlot(now)
	var missing []string
	for slot := range disksBySlot(outputs) {
		if _, named := wanted[slot]; !named {
			missing = append(missing, slot)
		}
	}
	slices.Sort(missing)

	return missing
}

// rebootingProperties returns the properties that the provider reboots a VM for, whatever changes in them.
func rebootingProperties() []resource.PropertyKey {
	return []resource.PropertyKey{
		"acpi", "agent", "audioDevice", "bios", "bootOrders", "cpu", "efiDisk", "hostpcis", "initialization",
		"keyboardLayout", "kvmArguments", "machine", "memory", "networkDevices", "numas", "operatingSystem",
		"scsiHardware", "serialDevices", "tabletDevice", "tpmState", "usbs", "vga", "watchdog",
	}
}

func disksBySlot(inputs resource.PropertyMap) map[string]resource.PropertyMap {
	found := map[string]resource.PropertyMap{}
	disks := withoutMarks(inputs["disks"])
	if !disks.IsArray() {
		return found
	}
	for _, disk := range disks.ArrayValue() {
		if disk = withoutMarks(disk); disk.IsObject() && disk.ObjectValue()["interface"].IsString() {
			found[disk.ObjectValue()["interface"].StringValue()] = disk.ObjectValue()
		}
	}

	return found
}

// defaultsKey is where the bridge to the provider notes which values are its defaults.
const defaultsKey = "__defaults"

// withoutMarks returns a value without marks of secrets, the bridge's notes, and nulls.
func withoutMarks(v resource.PropertyValue) resource.PropertyValue {
	switch {
	case v.IsSecret():
		return withoutMarks(v.SecretValue().Element)
	case v.IsOutput():
		return withoutMarks(v.OutputValue().Element)
	case v.IsNull():
		return resource.NewNullProperty()
	case v.IsArray():
		values := make([]resource.PropertyValue, 0, len(v.ArrayValue()))
		for _, element := range v.ArrayValue() {
			values = append(values, withoutMarks(element))
		}

		return resource.NewProperty(values)
	case v.IsObject():
		plain := resource.PropertyMap{}
		for key, element := range v.ObjectValue() {
			if element = withoutMarks(element); key != defaultsKey && !element.IsNull() {
				plain[key] = element
			}
		}

		return resource.NewProperty(plain)
	default:
		return v
	}
}
