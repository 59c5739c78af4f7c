// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package proxmox

import (
	"fmt"
	"maps"
	"slices"
	"strconv"

	"github.com/talos-proxmox/talos-proxmox/lab/site"
)

func (a *api) objects() {
	a.pools()
	a.ha()
	a.mappings(site.KindPCI)
	a.mappings(site.KindUSB)
}

func (a *api) pools() {
	a.handle("GET /pools", "", func(r *request) (any, error) {
		all := []object{}
		r.cluster.View(func(o site.Objects) {
			for _, name := range slices.Sorted(maps.Keys(o.Pools())) {
				all = append(all, object{"poolid": name, "comment": o.Pools()[name].Comment})
			}
		})

		return all, nil
	})
	a.handle("POST /pools", "Pool.Allocate", func(r *request) (any, error) {
		name := r.param("poolid")

		return nil, r.cluster.Edit(func(o site.Objects) error {
			if o.Pools()[name] != nil {
				return fmt.Errorf("create pool failed: pool '%s' already exists", name)
			}
			o.Pools()[name] = &site.Pool{Comment: r.param("comment")}

			return nil
		})
	})
	a.handle("GET /pools/{pool}", "", pool)
	a.handle("PUT /pools/{pool}", "Pool.Allocate", func(r *request) (any, error) {
		name := r.PathValue("pool")

		return nil, r.cluster.Edit(func(o site.Objects) error {
			if err := o.SetPool(name, split(r.param("vms")), split(r.param("storage")), r.flag("delete")); err != nil {
				return err
			}
			if r.form.Has("comment") {
				o.Pools()[name].Comment = r.param("comment")
			}

			return nil
		})
	})
	a.handle("DELETE /pools/{pool}", "Pool.Allocate", func(r *request) (any, error) {
		name := r.PathValue("pool")

		return nil, r.cluster.Edit(func(o site.Objects) error {
			switch p := o.Pools()[name]; {
			case p == nil:
				return fmt.Errorf("delete pool failed: pool '%s' does not exist", name)
			case len(p.VMs)+len(p.Storages) > 0:
				return fmt.Errorf("delete pool failed: pool '%s' is not empty", name)
			}
			delete(o.Pools(), name)

			return nil
		})
	})
}

func pool(r *request) (any, error) {
	name := r.PathValue("pool")
	var (
		out object
		err error
	)
	r.cluster.View(func(o site.Objects) {
		p := o.Pools()[name]
		if p == nil {
			err = fmt.Errorf("pool '%s' does not exist", name)

			return
		}
		members := []object{}
		for _, id := range p.VMs {
			if v, ok := o.VM(id); ok {
				members = append(members, object{
					"id": "qemu/" + strconv.Itoa(id), "type": "qemu", "vmid": id, "node": v.Host, "name": v.Name, "status": power(v),
				})
			}
		}
		for _, s := range p.Storages {
			members = append(members, object{"id": "storage/" + s, "type": "storage", "storage": s})
		}
		out = object{"comment": p.Comment, "members": members}
	})

	return out, err
}

// settings are a call's parameters without those that are no settings.
func settings(r *request) map[string]string {
	m := r.params()
	for _, k := range []string{"delete", "digest", "sid", "group", "type"} {
		delete(m, k)
	}

	return m
}

func (a *api) ha() {
	a.handle("GET /cluster/ha/groups", "Sys.Audit", func(r *request) (any, error) {
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
		sid := r.param("sid")

		return nil, r.cluster.Edit(func(o site.Objects) error {
			if err := o.CheckHA(sid); err != nil {
				return err
			}
			g := r.param("group")
			switch {
			case o.HAResources()[sid] != nil:
				return fmt.Errorf("resource ID '%s' already defined", sid)
			case g != "" && o.HAGroups()[g] == nil:
				return fmt.Errorf("group '%s' does not exist", g)
			}
			res := &site.HAResource{Settings: map[string]string{"state": "started"}}
			merge(res.Settings, r)
			o.HAResources()[sid] = res

			return nil
		})
	})
	a.handle("GET /cluster/ha/resources/{id}", "Sys.Audit", func(r *request) (any, error) {
		var out any
		err := fmt.Errorf("no such resource '%s'", r.PathValue("id"))
		r.cluster.View(func(o site.Objects) {
			if res := o.HAResources()[r.PathValue("id")]; res != nil {
				out, err = resource(r.PathValue("id"), res), nil
			}
		})

		return out, err
	})
	a.handle("PUT /cluster/ha/resources/{id}", "Sys.Console", func(r *request) (any, error) {
		return nil, r.cluster.Edit(func(o site.Objects) error {
			res := o.HAResources()[r.PathValue("id")]
			if res == nil {
				return fmt.Errorf("no such resource '%s'", r.PathValue("id"))
			}
			merge(res.Settings, r)

			return nil
		})
	})
	a.handle("DELETE /cluster/ha/resources/{id}", "Sys.Console", func(r *request) (any, error) {
		return nil, r.cluster.Edit(func(o site.Objects) error {
			if o.HAResources()[r.PathValue("id")] == nil {
				return fmt.Errorf("cannot delete service '%s', not HA managed!", r.PathValue("id")) //nolint:revive,staticcheck // Proxmox VE's own words
			}
			delete(o.HAResources(), r.PathValue("id"))

			return nil
		})
	})
}

func resource(sid string, res *site.HAResource) object {
	o := object{"sid": sid, "type": "vm", "state": "started", "digest": "da39a3ee5e6b4b0d3255bfef95601890afd80709"}
	for k, v := range res.Settings {
		o[k] = v
		if k == "max_relocate" || k == "max_restart" {
			o[k] = number(v, 1)
		}
	}

	return o
}

func (a *api) mappings(kind string) {
	base := "/cluster/mapping/" + kind
	a.handle("GET "+base, "Mapping.Audit", func(r *request) (any, error) {
		all := []object{}
		r.cluster.View(func(o site.Objects) {
			for _, name := range slices.Sorted(maps.Keys(o.Mappings(kind))) {
				all = append(all, mapping(kind, name, o.Mappings(kind)[name]))
			}
		})

		return all, nil
	})
	a.handle("POST "+base, "Mapping.Modify", func(r *request) (any, error) {
		name := r.param("id")

		return nil, r.cluster.Edit(func(o site.Objects) error {
			if o.Mappings(kind)[name] != nil {
				return fmt.Errorf("%s ID '%s' already defined", kind, name)
			}
			if err := site.CheckMapping(kind, r.form["map"]); err != nil {
				return err
			}
			o.Mappings(kind)[name] = &site.Mapping{Map: r.form["map"], Description: r.param("description"), MDev: r.flag("mdev")}

			return nil
		})
	})
	a.handle("GET "+base+"/{id}", "Mapping.Audit", func(r *request) (any, error) {
		var out any
		err := fmt.Errorf("mapping '%s' does not exist", r.PathValue("id"))
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
			return fmt.Errorf("mapping '%s' does not exist", r.PathValue("id"))
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
