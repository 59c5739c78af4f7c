// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package bridge

import (
	"slices"

	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
)

// Defaults holds the values that properties get when they are left out, by pattern: "cpu.cores",
// "disks[*].size". A default for an object or a list makes the block itself appear.
type Defaults map[string]any

const defaultsKey = resource.PropertyKey("__defaults")

// apply completes an object; path is its own. Blocks that are not there stay away unless they have a
// default of their own.
func (d Defaults) apply(t *Type, v resource.PropertyValue, path Path) resource.PropertyValue {
	switch {
	case v.IsSecret():
		return resource.MakeSecret(d.apply(t, v.SecretValue().Element, path))
	case v.IsArray() && t.Kind == List:
		out := make([]resource.PropertyValue, len(v.ArrayValue()))
		for i, e := range v.ArrayValue() {
			out[i] = d.apply(t.Elem, e, path.With(i))
		}
		return resource.NewProperty(out)
	case !v.IsObject() || t.Kind != Object:
		return v
	}

	props := resource.PropertyMap{}
	for k, e := range v.ObjectValue() {
		if e.IsNull() || internal(k) {
			continue
		}
		if f, ok := t.Field(string(k)); ok {
			e = d.apply(f.Type, e, path.With(string(k)))
		}
		props[k] = e
	}

	added := []string{}
	for _, f := range t.Fields {
		key := resource.PropertyKey(f.Name)
		value, ok := d[path.With(f.Name).Pattern()]
		if _, have := props[key]; have || !ok {
			continue
		}
		props[key] = d.apply(f.Type, property(value), path.With(f.Name))
		added = append(added, f.Name)
	}

	slices.Sort(added)
	list := make([]resource.PropertyValue, len(added))
	for i, a := range added {
		list[i] = resource.NewProperty(a)
	}
	props[defaultsKey] = resource.NewProperty(list)

	return resource.NewProperty(props)
}
