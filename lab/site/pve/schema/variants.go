// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package schema

import "slices"

// checkAllOf checks the parameters of a call whose kinds have parameters of their own: what all kinds have, and what
// the kind has that the request names.
func (d *Description) checkAllOf(values map[string]any, parts []property, found problems) {
	known := map[string]bool{}
	for _, part := range parts {
		for name, p := range part.Properties {
			known[name] = true
			d.check(values[name], p, name, "", found)
		}
		if part.TypeProperty == "" {
			continue
		}
		known[part.TypeProperty] = true
		kind, _ := values[part.TypeProperty].(string)
		kinds := property{}
		for _, variant := range part.OneOf {
			kinds.Enum = append(kinds.Enum, scalar(variant.InstanceType))
			if variant.InstanceType != kind {
				continue
			}
			for name, p := range variant.Properties {
				known[name] = true
				d.check(values[name], p, join("oneOf["+kind+"]", name), "", found)
			}
		}
		slices.Sort(kinds.Enum)
		d.check(values[part.TypeProperty], kinds, part.TypeProperty, "", found)
	}
	for name := range values {
		if !known[name] {
			found.add(name, unknownProperty)
		}
	}
}
