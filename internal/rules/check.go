// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package rules

import (
	"reflect"

	"github.com/talos-proxmox/talos-proxmox/internal/check"
	"github.com/talos-proxmox/talos-proxmox/spec"
)

// Check records everything that is wrong with the configuration, defaults included, at the path of the
// field: "nodes.work-01.memory". Each problem names the value, the rule and what would be right. It
// never prints a secret or free text. It returns what it checked: the configuration with its defaults.
func Check(c spec.Config, l *check.List) spec.Config {
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

// CheckNodes records what is wrong with the nodes themselves, whatever else the cluster is made
// of: for a caller that has nodes and no cluster.
func CheckNodes(c spec.Config, l *check.List) {
	r := &rules{said: c, c: c.WithDefaults(), l: l}
	for _, n := range r.c.Nodes {
		checkTags(nodePath(n), reflect.ValueOf(n.Node), r.l)
		r.node(n)
	}
}

// rules look at one configuration.
type rules struct {
	// said is the configuration as it was given, c with all defaults.
	said, c spec.Config
	l       *check.List
}

// tags checks what the types themselves say: allowed values, bounds, required fields.
func (r *rules) tags() {
	v := reflect.ValueOf(r.c)
	for _, f := range spec.Fields(v.Type()) {
		if f.Name != "nodes" {
			checkTags(f.Name, v.FieldByIndex(f.Index), r.l)
		}
	}
	for _, n := range r.c.Nodes {
		checkTags(nodePath(n), reflect.ValueOf(n.Node), r.l)
	}
}

func nodePath(n spec.NamedNode) string { return check.Key("nodes", n.Name) }
