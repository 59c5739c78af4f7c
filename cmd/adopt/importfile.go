// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/talos-proxmox/talos-proxmox/components"
)

// hidden stands in what Pulumi prints for a secret.
const hidden = "[secret]"

// provider is the one that manages the VMs.
type provider struct {
	urn string
	// known says that the state has it.
	known bool
	// inputs as they are printed, and open with the secrets.
	inputs, open map[string]any
}

func (p provider) hidesAny() bool { return hides(p.inputs) }

func hides(v any) bool {
	switch v := v.(type) {
	case string:
		return v == hidden
	case map[string]any:
		return slices.ContainsFunc(slices.Collect(maps.Values(v)), hides)
	case []any:
		return slices.ContainsFunc(v, hides)
	default:
		return false
	}
}

// sealed is the value open, with those of its parts marked as secret that were printed as such.
func sealed(printed, open any) any {
	switch p := printed.(type) {
	case string:
		if p == hidden {
			text, _ := json.Marshal(open) //nolint:errchkjson // it was JSON before

			return map[string]any{
				"4dabf18193072939515e22adb298388d": "1b47061264138c4ac30d75fd1eb44270", // Pulumi's mark of a secret
				"plaintext":                        string(text),
			}
		}
	case map[string]any:
		values, _ := open.(map[string]any)
		out := map[string]any{}
		for key, value := range p {
			out[key] = sealed(value, values[key])
		}

		return out
	case []any:
		values, _ := open.([]any)
		out := make([]any, 0, len(p))
		for i, value := range p {
			out = append(out, sealed(value, values[i]))
		}

		return out
	}

	return open
}

// importFile is what `pulumi import` reads: the VMs with all that is to be in the state, since the provider
// does not find everything when it looks at a VM that it does not know.
func importFile(p provider, found []planned) map[string]any {
	const name = "provider"
	var resources []map[string]any
	names := map[string]string{}
	if p.known {
		names[name] = p.urn
	} else {
		resources = append(resources, map[string]any{
			"type": providerType, "name": name, "logicalName": lastOf(p.urn), "version": p.open["version"],
			"inputs": sealed(p.inputs, p.open),
		})
	}
	for _, m := range found {
		node := lastOf(m.parent)
		resources = append(resources, map[string]any{
			"type": components.ProxmoxNodeType, "name": node, "logicalName": node, "component": true,
		}, map[string]any{
			"type": machineType, "name": lastOf(m.urn), "logicalName": lastOf(m.urn),
			"id": fmt.Sprint(m.id()), "parent": node, "provider": name,
			"inputs": m.unlimited(), "outputs": withoutNotes(m.unlimited()),
		})
	}

	return map[string]any{"nameTable": names, "resources": resources}
}

// unlimited is the inputs without speeds of disks that limit nothing, which the provider never finds.
func (m planned) unlimited() map[string]any {
	inputs := maps.Clone(m.inputs)
	var disks []any
	for _, d := range m.blocks("disks") {
		speed, _ := d["speed"].(map[string]any)
		d = maps.Clone(d)
		if !slices.ContainsFunc(slices.Collect(maps.Values(speed)), func(v any) bool { n, ok := v.(float64); return ok && n > 0 }) {
			delete(d, "speed")
		}
		disks = append(disks, d)
	}
	if disks != nil {
		inputs["disks"] = disks
	}

	return inputs
}

// lastOf is the name in a URN.
func lastOf(urn string) string { return urn[strings.LastIndex(urn, "::")+len("::"):] }

// withoutNotes is a value without what the bridge to the provider notes in inputs.
func withoutNotes(v any) any {
	switch v := v.(type) {
	case map[string]any:
		out := map[string]any{}
		for key, value := range v {
			if key != "__defaults" {
				out[key] = withoutNotes(value)
			}
		}

		return out
	case []any:
		out := make([]any, 0, len(v))
		for _, e := range v {
			out = append(out, withoutNotes(e))
		}

		return out
	default:
		return v
	}
}
