// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package proxmoxve

import (
	"fmt"
	"net/url"
	"strconv"
	"strings"

	"github.com/talos-proxmox/talos-proxmox/lab/standin/bridge"
)

// options builds a property string of Proxmox VE: "model=virtio,bridge=vmbr0".
type options []string

func (o *options) set(key, value string) {
	if value != "" {
		*o = append(*o, key+"="+value)
	}
}

func (o *options) flag(key string, on bool) { *o = append(*o, key+"="+bit(on)) }

// number leaves out zero.
func (o *options) number(key string, n int) {
	if n != 0 {
		*o = append(*o, key+"="+strconv.Itoa(n))
	}
}

func (o options) String() string { return strings.Join(o, ",") }

func bit(on bool) string {
	if on {
		return "1"
	}

	return "0"
}

// section writes one block of a VM into a request.
type section func(in bridge.Tree, vmid int, form url.Values)

// sections returns the blocks of a VM whose encoding is the same in creation and update.
func sections() map[string]section {
	return map[string]section{
		"acpi": boolean("acpi", "acpi"), "onBoot": boolean("onBoot", "onboot"),
		"protection": boolean("protection", "protection"), "tabletDevice": boolean("tabletDevice", "tablet"),
		"template": boolean("template", "template"),
		"bios":     text("bios", "bios"), "scsiHardware": text("scsiHardware", "scsihw"),
		"keyboardLayout": text("keyboardLayout", "keyboard"), "machine": text("machine", "machine"),
		"description": text("description", "description"), "kvmArguments": text("kvmArguments", "args"),
		"hookScriptFileId": text("hookScriptFileId", "hookscript"),
		"operatingSystem":  text("operatingSystem.type", "ostype"),
		"agent":            encodeAgent, "audioDevice": encodeAudio, "cpu": encodeCPU, "memory": encodeMemory,
		"networkDevices": encodeNetwork, "hostpcis": encodePCI, "usbs": encodeUSB, "numas": encodeNUMA,
		"serialDevices": encodeSerial, "smbios": encodeSMBIOS, "startup": encodeStartup, "vga": encodeVGA,
		"watchdog": encodeWatchdog, "tags": encodeTags,
	}
}

func boolean(path, key string) section {
	return func(in bridge.Tree, _ int, form url.Values) { form.Set(key, bit(in.Bool(path))) }
}

func text(path, key string) section {
	return func(in bridge.Tree, _ int, form url.Values) {
		if v := in.Str(path); v != "" {
			form.Set(key, v)
		}
	}
}

func encodeAgent(in bridge.Tree, _ int, form url.Values) {
	var o options
	o.flag("enabled", in.Bool("agent.enabled"))
	o.flag("fstrim_cloned_disks", in.Bool("agent.trim"))
	o.set("type", in.Str("agent.type"))
	form.Set("agent", o.String())
}

func encodeAudio(in bridge.Tree, _ int, form url.Values) {
	if in.Bool("audioDevice.enabled") {
		var o options
		o.set("device", in.Str("audioDevice.device"))
		o.set("driver", in.Str("audioDevice.driver"))
		form.Set("audio0", o.String())
	}
}

func encodeCPU(in bridge.Tree, _ int, form url.Values) {
	var o options
	o.set("cputype", in.Str("cpu.type"))
	o.set("flags", strings.Join(in.Strs("cpu.flags"), ";"))
	form.Set("cpu", o.String())

	form.Set("cores", strconv.Itoa(in.Int("cpu.cores")))
	form.Set("sockets", strconv.Itoa(in.Int("cpu.sockets")))
	form.Set("cpuunits", strconv.Itoa(in.Int("cpu.units")))
	form.Set("numa", bit(in.Bool("cpu.numa")))

	for path, key := range map[string]string{"cpu.hotplugged": "vcpus", "cpu.limit": "cpulimit"} {
		if n := in.Int(path); n > 0 {
			form.Set(key, strconv.Itoa(n))
		}
	}
	text("cpu.affinity", "affinity")(in, 0, form)
	text("cpu.architecture", "arch")(in, 0, form)
}

func encodeMemory(in bridge.Tree, vmid int, form url.Values) {
	form.Set("memory", strconv.Itoa(in.Int("memory.dedicated")))
	form.Set("balloon", strconv.Itoa(in.Int("memory.floating")))
	text("memory.hugepages", "hugepages")(in, vmid, form)

	if in.Bool("memory.keepHugepages") {
		form.Set("keephugepages", "1")
	}
	if n := in.Int("memory.shared"); n > 0 {
		form.Set("ivshmem", fmt.Sprintf("name=vm-%d-ivshmem,size=%d", vmid, n))
	}
}

func encodeNetwork(in bridge.Tree, _ int, form url.Values) {
	for i, n := range in.List("networkDevices") {
		if !n.Bool("enabled") {
			continue
		}

		var o options
		o.set("model", n.Str("model"))
		o.set("bridge", n.Str("bridge"))
		o.flag("firewall", n.Bool("firewall"))
		if n.Bool("disconnected") {
			o.flag("link_down", true)
		}
		o.set("macaddr", n.Str("macAddress"))
		o.number("queues", n.Int("queues"))
		if rate, ok := n.At("rateLimit").(float64); ok && rate != 0 {
			o.set("rate", fmt.Sprintf("%f", rate))
		}
		o.number("tag", n.Int("vlanId"))
		o.number("mtu", n.Int("mtu"))
		o.set("trunks", n.Str("trunks"))
		form.Set(fmt.Sprintf("net%d", i), o.String())
	}
}

func encodeTags(in bridge.Tree, _ int, form url.Values) {
	form.Set("tags", strings.Join(sortedTags(in.Strs("tags")), ";"))
}
