// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package proxmox

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/talos-proxmox/talos-proxmox/lab/site"
	"github.com/talos-proxmox/talos-proxmox/lab/site/pve/schema"
)

// haRules serves the rules that Proxmox VE 9 has in place of groups.
func (a *api) haRules() {
	a.handle("GET /cluster/ha/rules", "Sys.Audit", func(r *request) (any, error) {
		all := []object{}
		r.cluster.View(func(o site.Objects) {
			for _, name := range slices.Sorted(maps.Keys(o.HARules())) {
				all = append(all, rule(r, name, o.HARules()[name]))
			}
		})

		return all, nil
	})
	a.handle("POST /cluster/ha/rules", "Sys.Console", func(r *request) (any, error) {
		return nil, r.cluster.Edit(func(o site.Objects) error {
			name := r.param("rule")
			if o.HARules()[name] != nil {
				return fmt.Errorf("create ha rule failed: HA rule '%s' already defined", name)
			}
			if err := managed(o, r.param("resources")); err != nil {
				return fmt.Errorf("create ha rule failed: %w", err)
			}
			o.HARules()[name] = r.params()
			delete(o.HARules()[name], "rule")

			return nil
		})
	})
	a.handle("GET /cluster/ha/rules/{rule}", "Sys.Audit", func(r *request) (any, error) {
		var out any
		name := r.PathValue("rule")
		err := fmt.Errorf("no such ha rule '%s'", name)
		r.cluster.View(func(o site.Objects) {
			if have := o.HARules()[name]; have != nil {
				out, err = rule(r, name, have), nil
			}
		})

		return out, err
	})
	a.handle("PUT /cluster/ha/rules/{rule}", "Sys.Console", func(r *request) (any, error) {
		return nil, r.cluster.Edit(func(o site.Objects) error {
			have := o.HARules()[r.PathValue("rule")]
			if have == nil {
				return fmt.Errorf("HA rule '%s' does not exist", r.PathValue("rule"))
			}
			if err := managed(o, r.param("resources")); err != nil {
				return fmt.Errorf("update HA rule failed: %w", err)
			}
			maps.Copy(have, r.params())
			for _, k := range append(split(r.param("delete")), "delete", "digest", "rule") {
				delete(have, k)
			}

			return nil
		})
	})
	a.handle("DELETE /cluster/ha/rules/{rule}", "Sys.Console", func(r *request) (any, error) {
		return nil, r.cluster.Edit(func(o site.Objects) error {
			delete(o.HARules(), r.PathValue("rule"))

			return nil
		})
	})
}

// managed refuses resources that high availability does not manage.
func managed(o site.Objects, resources string) error {
	var others []string
	for _, sid := range split(resources) {
		if o.HAResources()[sid] == nil {
			others = append(others, sid)
		}
	}
	if len(others) > 0 {
		return fmt.Errorf("cannot use unmanaged resource(s) %s.", strings.Join(others, ", ")) // Proxmox VE's own words
	}

	return nil
}

func rule(r *request, name string, settings map[string]string) object {
	o := object{"rule": name, "order": 1, "digest": anyDigest}
	d, err := schema.Load(r.cluster.PVE())
	for k, v := range settings {
		o[k] = v
		if err == nil && slices.Contains(d.NumbersOf("POST /cluster/ha/rules"), k) {
			o[k] = number(v, 0)
		}
	}

	return o
}
