// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package proxmoxve

import (
	"maps"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/muhlba91/pulumi-proxmoxve/sdk/v6/go/proxmoxve/ha"
	"github.com/muhlba91/pulumi-proxmoxve/sdk/v6/go/proxmoxve/hardware/mapping"
	"github.com/muhlba91/pulumi-proxmoxve/sdk/v6/go/proxmoxve/permission"

	"github.com/talos-proxmox/talos-proxmox/lab/standin/bridge"
)

func pool() *bridge.Resource {
	o := object{
		what: "pool", path: "pools", key: "poolId", param: "poolid",
		encode: func(in bridge.Tree, form url.Values) { text("comment", "comment")(in, 0, form) },
	}

	return o.equip(&bridge.Resource{
		Args: &permission.PoolArgs{}, State: permission.Pool{},
		Replace: []string{"poolId"}, KeepsFailedUpdate: true,
	})
}

func haGroup() *bridge.Resource {
	o := object{
		what: "HA group", path: "cluster/ha/groups", key: "group", param: "group",
		encode: func(in bridge.Tree, form url.Values) {
			text("comment", "comment")(in, 0, form)
			form.Set("nofailback", bit(in.Bool("noFailback")))
			form.Set("restricted", bit(in.Bool("restricted")))

			nodes := in.Sub("nodes")
			var list []string
			for _, n := range slices.Sorted(maps.Keys(nodes)) {
				if p := nodes.Int(n); p != 0 {
					n += ":" + strconv.Itoa(p)
				}
				list = append(list, n)
			}
			form.Set("nodes", strings.Join(list, ","))
		},
		decode: func(raw map[string]any, _ bridge.Tree) bridge.Tree {
			nodes := map[string]any{}
			text, _ := raw["nodes"].(string)
			for n := range strings.SplitSeq(text, ",") {
				name, priority, _ := strings.Cut(n, ":")
				nodes[name] = number(or(priority, "0"))
			}
			return bridge.Tree{
				"nodes": nodes, "noFailback": number(raw["nofailback"]) == 1, "restricted": number(raw["restricted"]) == 1,
			}
		},
		outputs: func(in bridge.Tree) bridge.Tree {
			return bridge.Tree{"noFailback": in.Bool("noFailback"), "restricted": in.Bool("restricted")}
		},
	}

	return o.equip(&bridge.Resource{
		Args: &ha.HAGroupArgs{}, State: ha.HAGroup{},
		Required: []string{"nodes"}, Computed: []string{"noFailback", "restricted"}, Replace: []string{"group"},
	})
}

func haResource() *bridge.Resource {
	o := object{
		what: "HA resource", path: "cluster/ha/resources", key: "resourceId", param: "sid",
		added: func(in bridge.Tree, form url.Values) {
			kind, _, _ := strings.Cut(in.Str("resourceId"), ":")
			form.Set("type", or(in.Str("type"), kind))
		},
		failed: "Could not create HA resource '%s'.: error creating HA resource: %w",
		encode: func(in bridge.Tree, form url.Values) {
			text("comment", "comment")(in, 0, form)
			text("group", "group")(in, 0, form)
			form.Set("state", or(in.Str("state"), "started"))
			for path, key := range map[string]string{"maxRelocate": "max_relocate", "maxRestart": "max_restart"} {
				if in.Has(path) {
					form.Set(key, strconv.Itoa(in.Int(path)))
				}
			}
		},
		decode: func(raw map[string]any, base bridge.Tree) bridge.Tree {
			out := bridge.Tree{}
			if s, ok := raw["state"].(string); ok {
				out["state"] = s
			}
			if g, ok := raw["group"].(string); ok || base.Has("group") {
				out["group"] = g
			}
			return out
		},
		outputs: func(in bridge.Tree) bridge.Tree {
			kind, _, _ := strings.Cut(in.Str("resourceId"), ":")
			return bridge.Tree{"state": or(in.Str("state"), "started"), "type": or(in.Str("type"), kind)}
		},
	}

	return o.equip(&bridge.Resource{
		Args: &ha.HAResourceArgs{}, State: ha.HAResource{},
		Computed: []string{"state", "type"},
		Validate: func(p *bridge.Problems, in bridge.Tree) {
			r := rules{Problems: p, in: in}
			r.oneOf("state", "started", "stopped", "enabled", "disabled", "ignored")
			if v := in.Str("resourceId"); v != "" && !regexp.MustCompile(`^(vm|ct):\d+$`).MatchString(v) {
				r.fail("resourceId", "Invalid HA resource identifier. %q is not type:id, such as vm:100", v)
			}
		},
	})
}

// encodeMaps writes the devices of a mapping, one value each.
func encodeMaps(in bridge.Tree, form url.Values, keys map[string]string) {
	text("comment", "description")(in, 0, form)

	for _, d := range in.List("maps") {
		var o options
		for _, name := range slices.Sorted(maps.Keys(keys)) {
			switch v := d.At(name).(type) {
			case string:
				o.set(keys[name], v)
			case float64:
				o.set(keys[name], strconv.Itoa(int(v)))
			}
		}
		form.Add("map", o.String())
	}
}

func decodeMaps(raw map[string]any, keys map[string]string) bridge.Tree {
	listed, _ := raw["map"].([]any)
	devices := []bridge.Tree{}

	for _, e := range listed {
		line, _ := e.(string)
		d := bridge.Tree{}
		for name, key := range keys {
			if v := optionOf(line, key); v != "" {
				d[name] = v
				if name == "iommuGroup" {
					d[name] = number(v)
				}
			}
		}
		devices = append(devices, d)
	}

	out := bridge.Tree{"maps": devices}
	if comment, _ := raw["description"].(string); comment != "" {
		out["comment"] = comment
	}

	return out
}

func pciMapping() *bridge.Resource {
	keys := map[string]string{
		"comment": "description", "id": "id", "iommuGroup": "iommugroup", "node": "node", "path": "path",
		"subsystemId": "subsystem-id",
	}
	o := object{
		what: "hardware mapping", path: "cluster/mapping/pci", key: "name", param: "id",
		encode: func(in bridge.Tree, form url.Values) {
			encodeMaps(in, form, keys)
			if in.Bool("mediatedDevices") {
				form.Set("mdev", "1")
			}
		},
		decode: func(raw map[string]any, _ bridge.Tree) bridge.Tree {
			return merge(decodeMaps(raw, keys), bridge.Tree{"mediatedDevices": number(raw["mdev"]) == 1})
		},
		outputs: func(in bridge.Tree) bridge.Tree {
			return bridge.Tree{"mediatedDevices": in.Bool("mediatedDevices")}
		},
	}

	return o.equip(&bridge.Resource{
		Args: &mapping.PciArgs{}, State: mapping.Pci{},
		Required: []string{"maps"}, Computed: []string{"mediatedDevices"}, AutoName: "name",
		Validate: validateMaps(map[string]string{"id": deviceIDForm, "path": pciPathForm}),
	})
}

func usbMapping() *bridge.Resource {
	keys := map[string]string{"comment": "description", "id": "id", "node": "node", "path": "path"}
	o := object{
		what: "hardware mapping", path: "cluster/mapping/usb", key: "name", param: "id",
		encode: func(in bridge.Tree, form url.Values) { encodeMaps(in, form, keys) },
		decode: func(raw map[string]any, _ bridge.Tree) bridge.Tree { return decodeMaps(raw, keys) },
	}

	return o.equip(&bridge.Resource{
		Args: &mapping.UsbArgs{}, State: mapping.Usb{},
		Required: []string{"maps"}, AutoName: "name", Validate: validateMaps(map[string]string{"id": deviceIDForm}),
	})
}

// Forms of what tells a device apart, as the provider checks them.
const (
	deviceIDForm = `^[0-9A-Fa-f]{4}:[0-9A-Fa-f]{4}$`
	pciPathForm  = `^[a-f0-9]{4,}:[a-f0-9]{2}:[a-f0-9]{2}(\.[a-f0-9])?$`
)

// validateMaps checks the devices of a mapping. The provider keeps them as a set, whose members have no place.
func validateMaps(forms map[string]string) func(*bridge.Problems, bridge.Tree) {
	return func(p *bridge.Problems, in bridge.Tree) {
		for _, d := range in.List("maps") {
			for _, name := range slices.Sorted(maps.Keys(forms)) {
				if v := d.Str(name); v != "" && !regexp.MustCompile(forms[name]).MatchString(v) {
					p.Add(bridge.Path{"maps", name}, "Invalid device %s. %q is not valid", name, v)
				}
			}
		}
	}
}
