// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package stack

import (
	"maps"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/talos-proxmox/talos-proxmox/internal/check"
	"github.com/talos-proxmox/talos-proxmox/spec"
)

// keyAliases are names that other tools have for our settings.
var keyAliases = map[string]string{
	"rammb": "memory", "ram": "memory", "ramdedicated": "memory", "memorymib": "memory", "memorymb": "memory",
	"cores": "cpu", "machinetype": "role", "type": "role", "hostnode": "host", "nodename": "host", "targetnode": "host",
	"ip": "networks", "ipaddress": "networks", "network": "networks", "networkbridge": "networks", "bridge": "networks",
	"macaddress": "mac", "vlanid": "vlan", "vlantag": "vlan", "datastoreid": "datastore", "storage": "datastore",
	"igpu": "gpu", "gpudevices": "gpu", "sizegb": "size", "interface": "unitNumber", "unit": "unitNumber",
	"fileformat": "format", "scsihw": "scsiHardware", "onboot": "onBoot", "disksize": "osDisk", "osdisk": "osDisk",
	"apitoken": "apiToken", "token": "password", "podcidr": "podSubnets", "servicecidr": "serviceSubnets", "dnsservers": "nameservers",
	"ntpservers": "timeServers", "registrymirrors": "registries", "extramanifests": "extra", "repourl": "url",
	"revision": "branch", "overridepath": "overridePath", "talosversion": "version", "kubernetesversion": "version",
}

// unknown records a key that no setting has, with what was probably meant.
func (d *decoder) unknown(path, key string, value *yaml.Node, fields map[string]spec.Field) {
	names := slices.Sorted(maps.Keys(fields))
	best := check.Nearest(key, names)
	if best == "" {
		bare := strings.ToLower(strings.NewReplacer("-", "", "_", "").Replace(key))
		if _, ok := fields[keyAliases[bare]]; ok {
			best = keyAliases[bare]
		}
	}

	inside := keysOf(value, fields)
	for _, name := range inside {
		d.broken[check.Join(path, name)] = true
	}

	switch {
	case best == "" && len(inside) > 0 && path != "":
		d.fail(check.Key(path, key), "is an unknown block; what is in it belongs one level higher: write %s", check.Join(path, inside[0]))
	case path == "" && strings.ContainsAny(key, ".["):
		d.fail(check.Key(path, key), "was set without --path, and is one key of that name: run `pulumi config rm '%s:%s'`, then "+
			"`pulumi config set --path '%s:%s'` with the value", d.project, key, d.project, key)
	case best != "":
		d.fail(check.Key(path, key), "is an unknown setting; did you mean %q?", best)
		d.broken[check.Join(path, best)] = true
	case len(names) <= 12:
		d.fail(check.Key(path, key), "is an unknown setting; there are %s", strings.Join(names, ", "))
	default:
		d.fail(check.Key(path, key), "is an unknown setting; docs/reference/stack.md lists them all")
	}
}

// keysOf returns the keys of a block that are settings of the block around it.
func keysOf(value *yaml.Node, fields map[string]spec.Field) []string {
	var found []string
	for i := 0; i+1 < len(value.Content) && value.Kind == yaml.MappingNode; i += 2 {
		if _, known := fields[value.Content[i].Value]; known {
			found = append(found, value.Content[i].Value)
		}
	}

	return found
}
