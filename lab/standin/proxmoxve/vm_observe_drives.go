// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package proxmoxve

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/talos-proxmox/talos-proxmox/lab/standin/bridge"
)

// observeDrives reads disks, the CD and cloud-init back. Disks keep the order that is known.
func observeDrives(config vmConfig, base, out bridge.Tree) {
	cd := base.Str("cdrom.interface")
	known := base.List("disks")
	disks := []bridge.Tree{}

	for _, was := range known {
		if text, ok := config[was.Str("interface")]; ok {
			disks = append(disks, observeDisk(was, was.Str("interface"), text))
		}
	}
	for _, iface := range slices.Sorted(maps.Keys(config)) {
		text := config[iface]
		listed := slices.ContainsFunc(known, func(d bridge.Tree) bool { return d.Str("interface") == iface })
		if isDrive(iface) && !listed && iface != cd && !strings.Contains(text, "media=cdrom") {
			disks = append(disks, observeDisk(nil, iface, text))
		}
	}
	out["disks"] = disks

	if text, ok := config[cd]; ok && base.Bool("cdrom.enabled") {
		out["cdrom"] = over(base.Sub("cdrom"), bridge.Tree{"enabled": true, "fileId": volumeOf(text)})
	}
	if order := optionOf(config["boot"], "order"); order != "" && base.Has("bootOrders") {
		out["bootOrders"] = strings.Split(order, ";")
	}
	observeFirmware(config, base, out)
	observeInitialization(config, base, out)
}

// observeFirmware reads what the provider makes a new VM for. It reads an EFI disk where the state has one, and a TPM that
// the state does not have only when it is another than its default.
func observeFirmware(config vmConfig, base, out bridge.Tree) {
	if text, ok := config["efidisk0"]; ok && base.Has("efiDisk") {
		store, _, _ := strings.Cut(volumeOf(text), ":")
		out["efiDisk"] = over(base.Sub("efiDisk"), bridge.Tree{
			"datastoreId": store, "type": or(optionOf(text, "efitype"), "2m"),
			"preEnrolledKeys": optionOf(text, "pre-enrolled-keys") == "1",
		})
	}
	if text, ok := config["tpmstate0"]; ok {
		store, _, _ := strings.Cut(volumeOf(text), ":")
		read := bridge.Tree{"datastoreId": store, "version": or(optionOf(text, "version"), "v1.2")}
		if base.Has("tpmState") || store != "local-lvm" || read.Str("version") != "v2.0" {
			out["tpmState"] = over(base.Sub("tpmState"), read)
		}
	}
}

func observeDisk(was bridge.Tree, iface, text string) bridge.Tree {
	store, path, _ := strings.Cut(volumeOf(text), ":")

	d := over(was, bridge.Tree{
		"interface": iface, "datastoreId": store, "pathInDatastore": path,
		"size": int(sizeOf(text) / gibibyte), "aio": or(optionOf(text, "aio"), "io_uring"),
		"backup": optionOf(text, "backup") != "0", "cache": or(optionOf(text, "cache"), "none"),
		"discard": or(optionOf(text, "discard"), "ignore"), "iothread": optionOf(text, "iothread") == "1",
		"replicate": optionOf(text, "replicate") != "0", "ssd": optionOf(text, "ssd") == "1",
	})
	if f := optionOf(text, "format"); f != "" {
		d["fileFormat"] = f
	}
	if s := optionOf(text, "serial"); s != "" || was.Has("serial") {
		d["serial"] = s
	}

	return d
}

// observeInitialization reads addresses and name servers back.
func observeInitialization(config vmConfig, base, out bridge.Tree) {
	init := base.Sub("initialization")
	if init == nil {
		return
	}
	init = merge(init)

	known := init.List("ipConfigs")
	ips := []bridge.Tree{}
	for i := range maxIPConfigs {
		text, ok := config[fmt.Sprintf("ipconfig%d", i)]
		if !ok {
			continue
		}

		c := bridge.Tree{}
		if i < len(known) {
			c = merge(known[i])
		}
		for version, keys := range map[string][2]string{"ipv4": {"ip", "gw"}, "ipv6": {"ip6", "gw6"}} {
			address, gateway := optionOf(text, keys[0]), optionOf(text, keys[1])
			if address == "" && gateway == "" {
				continue
			}
			block := bridge.Tree{"address": address}
			if gateway != "" || c.Has(version+".gateway") {
				block["gateway"] = gateway
			}
			c[version] = map[string]any(block)
		}
		ips = append(ips, c)
	}
	if len(ips) > 0 || len(known) > 0 {
		init["ipConfigs"] = ips
	}

	if servers := strings.Fields(config["nameserver"]); len(servers) > 0 && init.Has("dns.servers") {
		init["dns"] = over(init.Sub("dns"), bridge.Tree{"servers": servers})
	}
	out["initialization"] = init
}
