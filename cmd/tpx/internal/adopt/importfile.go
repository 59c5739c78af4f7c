// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package adopt

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// NodeType is the type of the component that a node is.
const NodeType = "talos-proxmox:components:ProxmoxNode"

// hidden stands in what Pulumi prints for a secret.
const hidden = "[secret]"

// provider names the provider that manages the VMs.
type provider struct {
	urn string
	// known says that the state has it.
	known bool
	// inputs as they are printed.
	inputs map[string]any
}

// open is the inputs without those that are secret: the next up adds them.
func (p provider) open() map[string]any {
	inputs := maps.Clone(p.inputs)
	maps.DeleteFunc(inputs, func(_ string, v any) bool { return hides(v) })

	return inputs
}

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

// importFile returns what `pulumi import` reads: the VMs with all that should be in the state, since the
// provider reads only part of it back.
func importFile(p provider, found []planned) map[string]any {
	const name = "provider"
	var resources []map[string]any
	names := map[string]string{}
	if p.known {
		names[name] = p.urn
	} else {
		resources = append(resources, map[string]any{
			"type": providerType, "name": name, "logicalName": lastOf(p.urn), "version": p.inputs["version"],
			"inputs": p.open(),
		})
	}
	for _, m := range found {
		node := lastOf(m.parent)
		resources = append(resources, map[string]any{
			"type": NodeType, "name": node, "logicalName": node, "component": true,
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

// lastOf returns the name in a URN.
func lastOf(urn string) string { return urn[strings.LastIndex(urn, "::")+len("::"):] }

// withoutNotes returns a value without what the bridge to the provider records in inputs.
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
