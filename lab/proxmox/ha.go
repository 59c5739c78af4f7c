// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package proxmox

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/talos-proxmox/talos-proxmox/lab/site"
)

// settings returns a call's parameters without those that are no settings.
func settings(r *request) map[string]string {
	m := r.params()
	for _, k := range []string{"delete", "digest", "sid", "group", "type"} {
		delete(m, k)
	}

	return m
}

// migrated returns why Proxmox VE 9 does nothing with groups.
func migrated(r *request, what string) error {
	if r.cluster.PVE() > 8 { // the version before
		return fmt.Errorf("%s: ha groups have been migrated to rules", what)
	}

	return nil
}

func (a *api) ha() {
	a.handle("GET /cluster/ha/groups", "Sys.Audit", func(r *request) (any, error) {
		if err := migrated(r, "cannot index groups"); err != nil {
			return nil, err
		}
		all := []object{}
		r.cluster.View(func(o site.Objects) {
			for _, name := range slices.Sorted(maps.Keys(o.HAGroups())) {
				all = append(all, group(name, o.HAGroups()[name]))
			}
		})

		return all, nil
	})
	a.handle("POST /cluster/ha/groups", "Sys.Console", func(r *request) (any, error) {
		name := r.param("group")
		if err := migrated(r, "cannot create group"); err != nil {
			return nil, err
		}

		return nil, r.cluster.Edit(func(o site.Objects) error {
			if o.HAGroups()[name] != nil {
				return fmt.Errorf("create ha group failed: ha group ID '%s' already defined", name)
			}
			o.HAGroups()[name] = &site.HAGroup{Settings: settings(r)}

			return nil
		})
	})
	a.handle("GET /cluster/ha/groups/{id}", "Sys.Audit", func(r *request) (any, error) {
		var out any
		err := fmt.Errorf("no such ha group '%s'", r.PathValue("id"))
		r.cluster.View(func(o site.Objects) {
			if g := o.HAGroups()[r.PathValue("id")]; g != nil {
				out, err = group(r.PathValue("id"), g), nil
			}
		})

		return out, err
	})
	a.handle("PUT /cluster/ha/groups/{id}", "Sys.Console", func(r *request) (any, error) {
		return nil, r.cluster.Edit(func(o site.Objects) error {
			g := o.HAGroups()[r.PathValue("id")]
			if g == nil {
				return fmt.Errorf("no such ha group '%s'", r.PathValue("id"))
			}
			merge(g.Settings, r)

			return nil
		})
	})
	a.handle("DELETE /cluster/ha/groups/{id}", "Sys.Console", func(r *request) (any, error) {
		return nil, r.cluster.Edit(func(o site.Objects) error {
			for sid, res := range o.HAResources() {
				if res.Settings["group"] == r.PathValue("id") {
					return fmt.Errorf("ha group is used by service '%s'", sid)
				}
			}
			delete(o.HAGroups(), r.PathValue("id"))

			return nil
		})
	})
	a.haResources()
	a.haRules()
}

func merge(into map[string]string, r *request) {
	maps.Copy(into, settings(r))
	if g := r.param("group"); g != "" {
		into["group"] = g
	}
	for _, k := range split(r.param("delete")) {
		delete(into, k)
	}
}

func group(name string, g *site.HAGroup) object {
	o := object{
		"group": name, "type": "group", "nodes": g.Settings["nodes"],
		"nofailback": number(g.Settings["nofailback"], 0), "restricted": number(g.Settings["restricted"], 0),
	}
	if c := g.Settings["comment"]; c != "" {
		o["comment"] = c
	}

	return o
}

func (a *api) haResources() {
	a.handle("GET /cluster/ha/resources", "Sys.Audit", func(r *request) (any, error) {
		all := []object{}
		r.cluster.View(func(o site.Objects) {
			for _, sid := range slices.Sorted(maps.Keys(o.HAResources())) {
				all = append(all, resource(sid, o.HAResources()[sid]))
			}
		})

		return all, nil
	})
	a.handle("POST /cluster/ha/resources", "Sys.Console", func(r *request) (any, error) {
		sid := sidOf(r.param("sid"))
		if r.param("group") != "" {
			if err := migrated(r, "invalid parameter 'group'"); err != nil {
				return nil, err
			}
		}

		return nil, r.cluster.Edit(func(o site.Objects) error {
			if err := o.CheckHA(sid); err != nil {
				return err
			}
			if o.HAResources()[sid] != nil {
				return fmt.Errorf("create resource failed: resource ID '%s' already defined", sid)
			}
			res := &site.HAResource{Settings: map[string]string{"state": "started"}}
			merge(res.Settings, r)
			o.HAResources()[sid] = res
			o.LookAfter(sid)

			return nil
		})
	})
	a.handle("GET /cluster/ha/resources/{id}", "Sys.Audit", func(r *request) (any, error) {
		var out any
		sid := sidOf(r.PathValue("id"))
		err := fmt.Errorf("no such resource '%s'", sid)
		r.cluster.View(func(o site.Objects) {
			if res := o.HAResources()[sid]; res != nil {
				out, err = resource(sid, res), nil
			}
		})

		return out, err
	})
	a.handle("PUT /cluster/ha/resources/{id}", "Sys.Console", func(r *request) (any, error) {
		return nil, r.cluster.Edit(func(o site.Objects) error {
			res := o.HAResources()[sidOf(r.PathValue("id"))]
			if res == nil {
				return fmt.Errorf("update resources config failed: no such resource '%s'", sidOf(r.PathValue("id")))
			}
			merge(res.Settings, r)
			o.LookAfter(sidOf(r.PathValue("id")))

			return nil
		})
	})
	a.handle("DELETE /cluster/ha/resources/{id}", "Sys.Console", func(r *request) (any, error) {
		return nil, r.cluster.Edit(func(o site.Objects) error {
			sid := sidOf(r.PathValue("id"))
			if o.HAResources()[sid] == nil {
				return fmt.Errorf("cannot delete service '%s', not HA managed!", sid) // Proxmox VE's own words
			}
			delete(o.HAResources(), sid)

			return nil
		})
	})
}

func resource(sid string, res *site.HAResource) object {
	o := object{"sid": sid, "type": "vm", "state": "started", "digest": anyDigest}
	for k, v := range res.Settings {
		o[k] = v
		if k == "max_relocate" || k == "max_restart" {
			o[k] = number(v, 1)
		}
	}

	return o
}

// sidOf returns the whole id of a resource: the number of a VM is enough.
func sidOf(s string) string {
	if strings.Trim(s, "0123456789") == "" {
		return "vm:" + s
	}

	return s
}

// anyDigest stands where nothing depends on a digest.
const anyDigest = "da39a3ee5e6b4b0d3255bfef95601890afd80709"
