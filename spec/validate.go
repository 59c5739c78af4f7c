// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package spec

import (
	"reflect"

	"github.com/talos-proxmox/talos-proxmox/internal/check"
)

// Validate records everything that is wrong with the configuration, defaults included, at the path
// of the field: "nodes.work-01.memory". Each problem names the value, the rule and what would be
// right. It never prints a secret or free text.
func (c Config) Validate(l *check.List) { c.Complete(l) }

// Complete is WithDefaults and Validate in one: it returns what it checked.
func (c Config) Complete(l *check.List) Config {
	r := &rules{said: c, c: c.WithDefaults(), l: l}
	r.tags()
	r.cluster()
	r.vip()
	r.subnets()
	r.versions()
	r.talos()
	r.registries()
	r.kubernetes()
	r.cni()
	r.manifests()
	r.gitops()
	r.lifecycle()
	r.proxmox()
	for _, name := range sortedKeys(r.c.Images) {
		r.blockName(check.Key("images", name), name)
		r.image(check.Key("images", name), r.c.Images[name])
	}
	for _, n := range r.c.Nodes {
		r.node(n)
	}
	r.unique()
	r.hosts()

	return r.c
}

// rules look at one configuration.
type rules struct {
	// said is the configuration as it was given, c with all defaults.
	said, c Config
	l       *check.List
}

// tags checks what the types themselves say: allowed values, bounds, required fields.
func (r *rules) tags() {
	v := reflect.ValueOf(r.c)
	for _, f := range Fields(v.Type()) {
		if f.Name != "nodes" {
			checkTags(f.Name, v.FieldByIndex(f.Index), r.l)
		}
	}
	for _, n := range r.c.Nodes {
		checkTags(nodePath(n), reflect.ValueOf(n.Node), r.l)
	}
}

func nodePath(n NamedNode) string { return check.Key("nodes", n.Name) }
