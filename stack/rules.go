// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package stack

import (
	"maps"
	"slices"

	"github.com/talos-proxmox/talos-proxmox/internal/check"
	"github.com/talos-proxmox/talos-proxmox/internal/rules"
	"github.com/talos-proxmox/talos-proxmox/spec"
)

// fileRules returns what only a stack file can get wrong: settings in a place where they cannot be.
func (e *expansion) fileRules() []spec.Problem {
	var l check.List
	d := e.file.Defaults
	shared(&l, "defaults.all", d.All)
	shared(&l, "defaults.controlPlane", d.ControlPlane)
	shared(&l, "defaults.worker", d.Worker)
	if d.Worker.AllowSharedHost != nil {
		l.Addf("defaults.worker.allowSharedHost", "is for control planes: remove it")
	}
	for _, name := range slices.Sorted(maps.Keys(e.file.Sizes)) {
		size := e.file.Sizes[name]
		path := check.Key("sizes", name)
		blockName(&l, path, name)
		shared(&l, path, size)
		if size.Size != nil {
			l.Addf(path+".size", "a size cannot name another size: remove it")
		}
	}
	for _, name := range slices.Sorted(maps.Keys(e.file.Pools)) {
		pool := e.file.Pools[name]
		blockName(&l, check.Key("pools", name), name)
		ofOneNode(&l, check.Key("pools", name), pool.Node)
	}

	return l.Problems()
}

func blockName(l *check.List, path, name string) {
	if message := rules.CheckBlockName(name); message != "" {
		l.Addf(path, "%s", message)
	}
}

// shared records settings that cannot be for several nodes of several pools.
func shared(l *check.List, path string, n spec.Node) {
	if n.Role != nil {
		l.Addf(path+".role", "belongs to a node or a pool: remove it here")
	}
	ofOneNode(l, path, n)
	for _, name := range slices.Sorted(maps.Keys(n.Networks)) {
		network := n.Networks[name]
		at := check.Key(path+".networks", name)
		if network.Address != nil {
			l.Addf(at+".address", "belongs to one node, or to a pool as its first address: remove it here")
		}
		if network.Address6 != nil {
			l.Addf(at+".address6", "belongs to one node, or to a pool as its first address: remove it here")
		}
	}
}

// ofOneNode records settings that are one node's only.
func ofOneNode(l *check.List, path string, n spec.Node) {
	if n.VMID != nil {
		l.Addf(path+".vmId", "belongs to one node: write it under nodes, or give vmIdBase")
	}
	if n.Hostname != nil {
		l.Addf(path+".hostname", "belongs to one node: write it under nodes")
	}
	for _, name := range slices.Sorted(maps.Keys(n.Networks)) {
		if n.Networks[name].MAC != nil {
			l.Addf(check.Key(path+".networks", name)+".mac", "belongs to one node: write it under nodes")
		}
	}
}
