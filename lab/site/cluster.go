// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package site

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/talos-proxmox/talos-proxmox/lab/site/pve"
)

// Pool groups VMs and storages.
type Pool struct {
	Comment  string   `json:"comment,omitempty"`
	VMs      []int    `json:"vms,omitempty"`
	Storages []string `json:"storages,omitempty"`
}

// HAGroup describes a group of hosts for high availability; Settings are as the API has them.
type HAGroup struct {
	Settings map[string]string `json:"settings"`
}

// HAResource describes a VM under high availability, by its id "vm:100".
type HAResource struct {
	Settings map[string]string `json:"settings"`
}

// Mapping describes a PCI or USB resource mapping.
type Mapping struct {
	// Map has one entry per host, "node=alpha,path=0000:01:00.0,id=8086:1234".
	Map         []string `json:"map"`
	Description string   `json:"description,omitempty"`
	MDev        bool     `json:"mdev,omitempty"`
}

// Kinds of a [Mapping].
const (
	KindPCI = "pci"
	KindUSB = "usb"
)

// Edit changes pools, HA settings and mappings under the site's lock and saves them; an error of do
// is returned and nothing is saved.
func (c *Cluster) Edit(do func(o Objects) error) error {
	c.s.mu.Lock()
	defer c.s.mu.Unlock()

	if err := do(Objects{c}); err != nil {
		return err
	}

	return c.s.save()
}

// View reads pools, HA settings and mappings under the site's lock.
func (c *Cluster) View(do func(o Objects)) {
	c.s.mu.Lock()
	defer c.s.mu.Unlock()
	do(Objects{c})
}

// Objects reads and changes the cluster-wide objects. It is valid inside [Cluster.Edit] and [Cluster.View] alone.
type Objects struct{ c *Cluster }

// Pools returns the pools by name.
func (o Objects) Pools() map[string]*Pool { return o.c.c.Pools }

// HAGroups returns the HA groups by name.
func (o Objects) HAGroups() map[string]*HAGroup { return o.c.c.HAGroups }

// HAResources returns the HA resources by id.
func (o Objects) HAResources() map[string]*HAResource { return o.c.c.HAResources }

// HARules returns the HA rules by name.
func (o Objects) HARules() map[string]map[string]string { return o.c.c.HARules }

// Mappings returns the mappings of a kind, [KindPCI] or [KindUSB], by name.
func (o Objects) Mappings(kind string) map[string]*Mapping {
	if kind == KindUSB {
		return o.c.c.USB
	}

	return o.c.c.PCI
}

// VM returns a VM of the cluster, whatever its host.
func (o Objects) VM(id int) (VM, bool) {
	v, ok := o.c.c.VMs[id]
	if !ok {
		return VM{}, false
	}

	return o.c.view(v), true
}

// SetPool adds VMs and storages to a pool, or takes them out of it.
func (o Objects) SetPool(name string, vms, storages []string, remove, move bool) error {
	p, ok := o.c.c.Pools[name]
	if !ok {
		return pve.Errorf("pool '%s' does not exist", name)
	}

	for _, s := range vms {
		id, err := strconv.Atoi(s)
		if err != nil || o.c.c.VMs[id] == nil {
			continue // as a host does
		}
		switch have := slices.Contains(p.VMs, id); {
		case remove && !have:
			return pve.Errorf("VM %d is not a pool member", id)
		case remove:
			p.VMs = slices.DeleteFunc(p.VMs, func(v int) bool { return v == id })
		case have:
			return pve.Errorf("VM %d is already a pool member", id)
		default:
			for other, q := range o.c.c.Pools {
				if slices.Contains(q.VMs, id) && move {
					q.VMs = slices.DeleteFunc(q.VMs, func(v int) bool { return v == id })
				} else if slices.Contains(q.VMs, id) {
					return pve.Errorf("VM %d belongs already to pool '%s' and 'allow-move' is not set", id, other)
				}
			}
			p.VMs = append(p.VMs, id)
		}
	}
	for _, s := range storages {
		p.Storages = slices.DeleteFunc(p.Storages, func(have string) bool { return have == s })
		if !remove {
			p.Storages = append(p.Storages, s)
		}
	}

	return nil
}

// CheckHA refuses an HA resource that does not exist.
func (o Objects) CheckHA(sid string) error {
	kind, id, ok := strings.Cut(sid, ":")
	n, err := strconv.Atoi(id)
	if !ok || kind != "vm" || err != nil {
		return pve.Invalid("sid", "invalid format - value does not look like a valid HA resource ID")
	}
	if o.c.c.VMs[n] == nil {
		return pve.Errorf("resource '%s' does not exist in cluster", sid)
	}

	return nil
}

// CheckMapping refuses a mapping without the properties its kind needs.
func CheckMapping(kind string, entries []string) error {
	if len(entries) == 0 {
		return pve.Invalid("map", "property is missing and it is not optional")
	}
	needed := []string{"id", "node"}
	if kind == KindPCI {
		needed = []string{"id", "node", "path"}
	}
	for _, entry := range entries {
		p := pve.ParseProperties("", entry)
		for _, k := range needed {
			if p.Get(k) == "" {
				return pve.Invalid("map", "invalid format - format error\nmap.%s: property is missing and it is not optional", k)
			}
		}
	}

	return nil
}

// Bridges returns the bridges of a host: its own, and those that VMs use there when every name is one.
func (c *Cluster) Bridges(host string) ([]string, error) {
	c.s.mu.Lock()
	defer c.s.mu.Unlock()

	h, err := c.host(host)
	if err != nil {
		return nil, err
	}
	if len(h.Bridges) > 0 {
		return h.Bridges, nil
	}

	names := map[string]bool{"vmbr0": true}
	for _, v := range c.c.VMs {
		if v.Host == h.Name {
			for i := range 32 {
				if b := pve.ParseNet(v.Config[fmt.Sprintf("net%d", i)]).Bridge; b != "" {
					names[b] = true
				}
			}
		}
	}

	return slices.Sorted(maps.Keys(names)), nil
}
