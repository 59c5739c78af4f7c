// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package adopt

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// hidden is printed by Pulumi in place of a secret.
const hidden = "[secret]"

// provider names the provider that manages the VMs.
type provider struct {
	urn, parent string
	// known says that the state has it.
	known bool
	// inputs as they are printed.
	inputs map[string]any
}

// open returns the inputs that are not secret: the next `up` adds the others.
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

// importFile returns what `pulumi import` reads: the VMs with all that is to be in the state, since the provider
// does not find everything when it looks at a VM that it does not know, and what they belong to.
func importFile(p plan, found []planned) map[string]any {
	f := &importSpec{plan: p, names: map[string]string{}, done: map[string]bool{}}
	const name = "provider"
	if p.provider.known {
		f.names[name] = p.provider.urn
	} else {
		f.add(map[string]any{
			"type": providerType, "name": name, "logicalName": lastOf(p.provider.urn), "version": p.provider.inputs["version"],
			"inputs": p.provider.open(),
		}, f.component(p.provider.parent))
	}
	for _, m := range found {
		f.add(map[string]any{
			"type": machineType, "name": lastOf(m.urn), "logicalName": lastOf(m.urn),
			"id": fmt.Sprint(m.id()), "provider": name,
			"inputs": m.unlimited(), "outputs": withoutNotes(m.unlimited()),
		}, f.component(m.parent))
	}

	return map[string]any{"nameTable": f.names, "resources": f.resources}
}

// providersParents returns what `pulumi import` reads first, nil when there is nothing: the components that the
// provider belongs to. It registers providers before everything else in a file, and a provider without its
// parent makes the state invalid. From then on the plan has them as known.
func providersParents(p plan) map[string]any {
	f := &importSpec{plan: p, names: map[string]string{}, done: map[string]bool{}}
	if p.provider.known || f.component(p.provider.parent) == "" || len(f.resources) == 0 {
		return nil
	}
	for urn := range f.done {
		c := p.components[urn]
		c.known = true
		p.components[urn] = c
	}

	return map[string]any{"nameTable": f.names, "resources": f.resources}
}

// importSpec collects resources; each comes after what it belongs to.
type importSpec struct {
	plan      plan
	names     map[string]string
	resources []map[string]any
	done      map[string]bool
}

func (f *importSpec) add(resource map[string]any, parent string) {
	if parent != "" {
		resource["parent"] = parent
	}
	f.resources = append(f.resources, resource)
}

// component adds a component and what it belongs to, once, and returns its name in the file; empty for the
// stack itself.
func (f *importSpec) component(urn string) string {
	c, ok := f.plan.components[urn]
	if !ok || c.kind == stackType {
		return ""
	}
	name := c.kind[strings.LastIndex(c.kind, ":")+1:] + "-" + lastOf(urn)
	if f.done[urn] {
		return name
	}
	f.done[urn] = true
	if c.known {
		f.names[name] = urn

		return name
	}
	parent := f.component(c.parent)
	f.add(map[string]any{"type": c.kind, "name": name, "logicalName": lastOf(urn), "component": true}, parent)

	return name
}

// stackType is the type of the resource that everything belongs to.
const stackType = "pulumi:pulumi:Stack"

// unlimited returns the inputs without disk speeds that limit nothing, which the provider never reads back.
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
