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
	a.handle("POST /pools", "", func(r *request) (any, error) {
		name := r.param("poolid")
		if err := r.check(at("/pool/"+name, "Pool.Allocate")); err != nil {
			return nil, err
		}

		return nil, r.cluster.Edit(func(o site.Objects) error {
			if o.Pools()[name] != nil {
				return fmt.Errorf("create pool failed: pool '%s' already exists", name)
			}
			o.Pools()[name] = &site.Pool{Comment: r.param("comment")}

			return nil
		})
	})
	a.handle("GET /pools/{pool}", "Pool.Audit", pool)
	a.handle("PUT /pools/{pool}", "Pool.Allocate", func(r *request) (any, error) {
		name := r.PathValue("pool")

		return nil, r.cluster.Edit(func(o site.Objects) error {
			if err := o.SetPool(name, split(r.param("vms")), split(r.param("storage")), r.flag("delete"), r.flag("allow-move")); err != nil {
				return fmt.Errorf("update pools failed: %w", err)
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
			case len(p.VMs) > 0:
				return fmt.Errorf("delete pool failed: pool '%s' is not empty (contains VM %d)", name, slices.Min(p.VMs))
			case len(p.Storages) > 0:
				return fmt.Errorf("delete pool failed: pool '%s' is not empty (contains storage '%s')", name, p.Storages[0])
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
