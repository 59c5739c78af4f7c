// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package schema

import (
	"maps"
	"slices"
	"strings"
)

const (
	createVM = "POST /nodes/{node}/qemu"
	changeVM = "POST /nodes/{node}/qemu/{vmid}/config"
)

// Settings refuses settings of a VM that Proxmox VE refuses, for those who give them past the API.
func (d *Description) Settings(settings map[string]string) error {
	values := map[string]any{"node": "localhost", "vmid": "100"}
	for name, value := range settings {
		values[name] = value
	}

	return d.Parameters(changeVM, values)
}

// IsSetting reports whether a name is one of the settings of a VM, and no other parameter of the calls that take them.
func (d *Description) IsSetting(name string) bool {
	others := []string{"background_delay", "delete", "digest", "force", "import-working-storage", "node", "revert", "skiplock", "vmid"}
	_, known := d.field(d.calls[placeholder.ReplaceAllString(changeVM, "{}")].Parameters.Properties, name)

	return known && !slices.Contains(others, name)
}

// Normal returns a property string of a setting as Proxmox VE keeps it: booleans are 0 and 1.
func (d *Description) Normal(setting, value string) string {
	p, ok := d.field(d.calls[placeholder.ReplaceAllString(createVM, "{}")].Parameters.Properties, setting)
	if !ok || p.Format == nil {
		return value
	}
	fields := p.Format.fields
	if fields == nil {
		fields = d.formats[p.Format.name].Properties
	}
	parts := strings.Split(value, ",")
	for i, part := range parts {
		if name, v, pair := strings.Cut(part, "="); pair {
			parts[i] = name + "=" + fieldText(fields[name], v)
		}
	}

	return strings.Join(parts, ",")
}

// Numbers returns the settings of a VM whose values are numbers in answers: integers and booleans.
func (d *Description) Numbers() []string { return d.NumbersOf(createVM) }

// NumbersOf returns the parameters of a call that are integers and booleans.
func (d *Description) NumbersOf(call string) []string {
	var names []string
	fields := d.calls[placeholder.ReplaceAllString(call, "{}")].Parameters.Properties
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		if t := fields[name].Type; t.has("integer") || t.has("boolean") {
			names = append(names, name)
		}
	}

	return names
}
