// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package proxmox

import (
	"fmt"
	"maps"
	"slices"

	"github.com/talos-proxmox/talos-proxmox/lab/site"
)

func (a *api) mappings(kind string) {
	base := "/cluster/mapping/" + kind
	a.handle("GET "+base, "", func(r *request) (any, error) {
		all := []object{}
		r.cluster.View(func(o site.Objects) {
			for _, name := range slices.Sorted(maps.Keys(o.Mappings(kind))) {
				if r.check(at("/mapping/"+kind+"/"+name, "Mapping.Audit", "Mapping.Modify", "Mapping.Use")) != nil {
					continue // as if there were none
				}
				all = append(all, mapping(kind, name, o.Mappings(kind)[name]))
			}
		})

		return all, nil
	})
	a.handle("POST "+base, "Mapping.Modify", func(r *request) (any, error) {
		name := r.param("id")

		return nil, r.cluster.Edit(func(o site.Objects) error {
			if o.Mappings(kind)[name] != nil {
				return fmt.Errorf("create hardware mapping failed: %s ID '%s' already defined", kind, name)
			}
			if err := site.CheckMapping(kind, r.form["map"]); err != nil {
				return err
			}
			o.Mappings(kind)[name] = &site.Mapping{Map: r.form["map"], Description: r.param("description"), MDev: r.flag("mdev")}

			return nil
		})
	})
	a.handle("GET "+base+"/{id}", "Mapping.Audit|Mapping.Modify|Mapping.Use", func(r *request) (any, error) {
		var out any
		err := fmt.Errorf("mapping '%s' not found", r.PathValue("id"))
		r.cluster.View(func(o site.Objects) {
			if m := o.Mappings(kind)[r.PathValue("id")]; m != nil {
				out, err = mapping(kind, r.PathValue("id"), m), nil
			}
		})

		return out, err
	})
	a.handle("PUT "+base+"/{id}", "Mapping.Modify", func(r *request) (any, error) { return nil, editMapping(r, kind) })
	a.handle("DELETE "+base+"/{id}", "Mapping.Modify", func(r *request) (any, error) {
		return nil, r.cluster.Edit(func(o site.Objects) error {
			delete(o.Mappings(kind), r.PathValue("id"))

			return nil
		})
	})
}

func editMapping(r *request, kind string) error {
	return r.cluster.Edit(func(o site.Objects) error {
		m := o.Mappings(kind)[r.PathValue("id")]
		if m == nil {
			return fmt.Errorf("%s ID '%s' does not exist", kind, r.PathValue("id"))
		}
		if !r.form.Has("map") {
			return fmt.Errorf("update hardware mapping failed: missing value for required option 'map'")
		}
		if entries := r.form["map"]; len(entries) > 0 {
			if err := site.CheckMapping(kind, entries); err != nil {
				return err
			}
			m.Map = entries
		}
		if r.form.Has("description") {
			m.Description = r.param("description")
		}
		if r.form.Has("mdev") {
			m.MDev = r.flag("mdev")
		}
		if slices.Contains(split(r.param("delete")), "description") {
			m.Description = ""
		}

		return nil
	})
}

func mapping(kind, name string, m *site.Mapping) object {
	o := object{"id": name, "type": kind, "map": m.Map}
	if m.Description != "" {
		o["description"] = m.Description
	}
	if kind == site.KindPCI && m.MDev {
		o["mdev"] = 1
	}

	return o
}
