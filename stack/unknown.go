// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package stack

import (
	"maps"
	"slices"
	"strings"

	"github.com/talos-proxmox/talos-proxmox/internal/check"
	"github.com/talos-proxmox/talos-proxmox/spec"
)

// elsewhere are names that other tools have for our settings.
var elsewhere = map[string]string{
	"rammb": "memory", "ram": "memory", "ramdedicated": "memory", "memorymib": "memory", "memorymb": "memory",
	"cores": "cpu", "machinetype": "role", "type": "role", "hostnode": "host", "nodename": "host", "targetnode": "host",
	"ip": "networks", "ipaddress": "networks", "network": "networks", "networkbridge": "networks", "bridge": "networks",
	"macaddress": "mac", "vlanid": "vlan", "vlantag": "vlan", "datastoreid": "datastore", "storage": "datastore",
	"igpu": "gpu", "gpudevices": "gpu", "sizegb": "size", "interface": "unitNumber", "unit": "unitNumber",
	"fileformat": "format", "scsihw": "scsiHardware", "onboot": "onBoot", "disksize": "osDisk", "osdisk": "osDisk",
	"apitoken": "apiToken", "podcidr": "podSubnets", "servicecidr": "serviceSubnets", "dnsservers": "nameservers",
	"ntpservers": "timeServers", "registrymirrors": "registries", "extramanifests": "extra", "repourl": "url",
	"revision": "branch", "overridepath": "overridePath", "talosversion": "version", "kubernetesversion": "version",
}

// unknown records a key that no setting has, with what was probably meant.
func (d *decoder) unknown(path, key string, fields map[string]spec.Field) {
	names := slices.Sorted(maps.Keys(fields))
	best := check.Nearest(key, names)
	if best == "" {
		bare := strings.ToLower(strings.NewReplacer("-", "", "_", "").Replace(key))
		if _, ok := fields[elsewhere[bare]]; ok {
			best = elsewhere[bare]
		}
	}

	switch {
	case best != "":
		d.fail(check.Key(path, key), "is no setting; did you mean %q?", best)
		d.broken[check.Join(path, best)] = true
	case len(names) <= 12:
		d.fail(check.Key(path, key), "is no setting; there are %s", strings.Join(names, ", "))
	default:
		d.fail(check.Key(path, key), "is no setting; docs/reference/stack.md lists those there are")
	}
}
