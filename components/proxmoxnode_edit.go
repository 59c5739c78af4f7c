// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package components

import (
	"slices"

	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
)

// VMEditReboots says whether the provider reboots, or shuts down and starts, a VM to bring its inputs
// from was to now. The gate asks it, so that an edit which disturbs nobody waits for nobody.
func VMEditReboots(was, now resource.PropertyMap) bool {
	for _, property := range rebootingProperties() {
		if !plainly(was[property]).DeepEquals(plainly(now[property])) {
			return true
		}
	}
	before := disksBySlot(was)
	for slot, disk := range disksBySlot(now) {
		old, there := before[slot]
		if there && !(plainly(old["aio"]).DeepEquals(plainly(disk["aio"])) &&
			plainly(old["datastoreId"]).DeepEquals(plainly(disk["datastoreId"]))) {
			return true
		}
	}

	return false
}

// rebootingProperties are those that the provider reboots a VM for, whatever changes in them.
func rebootingProperties() []resource.PropertyKey {
	return []resource.PropertyKey{
		"acpi", "agent", "audioDevice", "bios", "bootOrders", "cpu", "efiDisk", "hostpcis", "initialization",
		"keyboardLayout", "kvmArguments", "machine", "memory", "networkDevices", "numas", "operatingSystem",
		"scsiHardware", "serialDevices", "tabletDevice", "tpmState", "usbs", "vga", "watchdog",
	}
}

// VMEditReplaces says whether the provider replaces a VM to bring its inputs from was to now.
func VMEditReplaces(was, now resource.PropertyMap) bool {
	for _, property := range []resource.PropertyKey{"vmId", "clone", "template"} {
		if !plainly(was[property]).DeepEquals(plainly(now[property])) {
			return true
		}
	}
	migrates := now["migrate"].IsBool() && now["migrate"].BoolValue()
	if !plainly(was["nodeName"]).DeepEquals(plainly(now["nodeName"])) && !migrates {
		return true
	}
	if !slices.EqualFunc(blocks(was, "efiDisk", "type", "fileFormat", "preEnrolledKeys"),
		blocks(now, "efiDisk", "type", "fileFormat", "preEnrolledKeys"), resource.PropertyValue.DeepEquals) {
		return true
	}

	return !slices.EqualFunc(blocks(was, "tpmState", "version"), blocks(now, "tpmState", "version"),
		resource.PropertyValue.DeepEquals)
}

// blocks are the named properties of a block; nothing when there is no block.
func blocks(inputs resource.PropertyMap, block resource.PropertyKey, names ...resource.PropertyKey) []resource.PropertyValue {
	value := plainly(inputs[block])
	if !value.IsObject() {
		return nil
	}
	var found []resource.PropertyValue
	for _, name := range names {
		found = append(found, plainly(value.ObjectValue()[name]))
	}

	return found
}

func disksBySlot(inputs resource.PropertyMap) map[string]resource.PropertyMap {
	found := map[string]resource.PropertyMap{}
	disks := plainly(inputs["disks"])
	if !disks.IsArray() {
		return found
	}
	for _, disk := range disks.ArrayValue() {
		if disk = plainly(disk); disk.IsObject() && disk.ObjectValue()["interface"].IsString() {
			found[disk.ObjectValue()["interface"].StringValue()] = disk.ObjectValue()
		}
	}

	return found
}

// defaultsKey is where the bridge to the provider notes which values nobody gave.
const defaultsKey = "__defaults"

// plainly is the value without secrecy, bookkeeping, and the difference between null and nothing.
func plainly(v resource.PropertyValue) resource.PropertyValue {
	switch {
	case v.IsSecret():
		return plainly(v.SecretValue().Element)
	case v.IsOutput():
		return plainly(v.OutputValue().Element)
	case v.IsNull():
		return resource.NewNullProperty()
	case v.IsArray():
		values := make([]resource.PropertyValue, 0, len(v.ArrayValue()))
		for _, element := range v.ArrayValue() {
			values = append(values, plainly(element))
		}

		return resource.NewProperty(values)
	case v.IsObject():
		plain := resource.PropertyMap{}
		for key, element := range v.ObjectValue() {
			if element = plainly(element); key != defaultsKey && !element.IsNull() {
				plain[key] = element
			}
		}

		return resource.NewProperty(plain)
	default:
		return v
	}
}
