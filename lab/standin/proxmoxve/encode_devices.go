// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package proxmoxve

import (
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/talos-proxmox/talos-proxmox/lab/standin/bridge"
)

func sortedTags(tags []string) []string {
	var out []string
	for _, t := range tags {
		if t = strings.TrimSpace(t); t != "" {
			out = append(out, t)
		}
	}
	slices.Sort(out)

	return out
}

func encodePCI(in bridge.Tree, _ int, form url.Values) {
	for _, d := range in.List("hostpcis") {
		var o options
		o.set("host", d.Str("id"))
		o.set("mapping", d.Str("mapping"))
		o.set("mdev", d.Str("mdev"))
		o.flag("pcie", d.Bool("pcie"))
		o.flag("rombar", d.Bool("rombar"))
		o.set("romfile", d.Str("romFile"))
		o.flag("x-vga", d.Bool("xvga"))
		form.Set(d.Str("device"), o.String())
	}
}

func encodeUSB(in bridge.Tree, _ int, form url.Values) {
	for i, d := range in.List("usbs") {
		var o options
		o.set("host", d.Str("host"))
		o.set("mapping", d.Str("mapping"))
		o.flag("usb3", d.Bool("usb3"))
		form.Set(fmt.Sprintf("usb%d", i), o.String())
	}
}

func encodeNUMA(in bridge.Tree, _ int, form url.Values) {
	for _, d := range in.List("numas") {
		var o options
		o.set("cpus", d.Str("cpus"))
		o.set("hostnodes", d.Str("hostnodes"))
		o.number("memory", d.Int("memory"))
		o.set("policy", d.Str("policy"))
		form.Set(d.Str("device"), o.String())
	}
}

func encodeSerial(in bridge.Tree, _ int, form url.Values) {
	for i, d := range in.List("serialDevices") {
		form.Set(fmt.Sprintf("serial%d", i), d.Str("device"))
	}
}

func encodeSMBIOS(in bridge.Tree, _ int, form url.Values) {
	if !in.Has("smbios") {
		return
	}

	// The API takes these encoded, so that they may hold commas.
	o := options{"base64=1"}
	for _, k := range []string{"family", "manufacturer", "product", "serial", "sku"} {
		if v := in.Str("smbios." + k); v != "" {
			o.set(k, encode64(v))
		}
	}
	o.set("uuid", in.Str("smbios.uuid"))
	if v := in.Str("smbios.version"); v != "" {
		o.set("version", encode64(v))
	}
	form.Set("smbios1", o.String())
}

func encodeStartup(in bridge.Tree, _ int, form url.Values) {
	var o options
	for path, key := range map[string]string{"order": "order", "upDelay": "up", "downDelay": "down"} {
		if n := in.Int("startup." + path); in.Has("startup."+path) && n >= 0 {
			o.set(key, strconv.Itoa(n))
		}
	}
	slices.SortFunc(o, func(a, b string) int { return startupRank(a) - startupRank(b) })

	if len(o) > 0 {
		form.Set("startup", o.String())
	}
}

func startupRank(option string) int {
	return slices.IndexFunc([]string{"order=", "up=", "down="}, func(p string) bool {
		return strings.HasPrefix(option, p)
	})
}

func encodeVGA(in bridge.Tree, _ int, form url.Values) {
	var o options
	o.set("clipboard", in.Str("vga.clipboard"))
	o.number("memory", in.Int("vga.memory"))
	o.set("type", in.Str("vga.type"))
	form.Set("vga", o.String())
}

func encodeWatchdog(in bridge.Tree, _ int, form url.Values) {
	if in.Bool("watchdog.enabled") {
		var o options
		o.set("model", in.Str("watchdog.model"))
		o.set("action", in.Str("watchdog.action"))
		form.Set("watchdog", o.String())
	}
}
