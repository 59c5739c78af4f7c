// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package rules_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/talos-proxmox/talos-proxmox/internal/check"
	"github.com/talos-proxmox/talos-proxmox/internal/rules"
	"github.com/talos-proxmox/talos-proxmox/spec"
)

// small returns a cluster as a Go caller writes it by hand.
func small() spec.Config {
	node := func(name string, role spec.Role, id int, address string) spec.NamedNode {
		return spec.NamedNode{Name: name, Node: spec.Node{
			Role: &role, Host: spec.Ptr("pve1"), VMID: &id,
			Networks: map[string]spec.Network{"lan": {Bridge: spec.Ptr("vmbr0"), Address: &address, Gateway: spec.Ptr("10.0.0.1")}},
		}}
	}

	return spec.Config{
		Cluster: spec.Cluster{Name: spec.Ptr("small")},
		Nodes: []spec.NamedNode{
			node("work-1", spec.Worker, 201, "10.0.0.21/24"), node("ctrl-1", spec.ControlPlane, 101, "10.0.0.11/24"),
		},
	}
}

func problems(c spec.Config) []string {
	var l check.List
	rules.Check(c, &l)
	var all []string
	for _, p := range l.Problems() {
		all = append(all, p.String())
	}

	return all
}

func TestHandWrittenConfig(t *testing.T) {
	t.Parallel()
	assert.Empty(t, problems(small()))

	c := small()
	c.Nodes[0].Memory = spec.Ptr(spec.MiB(64))
	c.Nodes[1].Networks["lan"] = spec.Network{Address: spec.Ptr("10.0.0.21/24")}
	c.Cluster.VIP = spec.Ptr("10.0.9.9")
	assert.Equal(t, []string{
		"cluster.vip: 10.0.9.9 is outside the control planes' network 10.0.0.0/24: choose a free address inside it",
		"nodes.work-1.memory: 64 is too small: the least is 1024",
		"nodes.work-1.networks.lan.address: 10.0.0.21 is the address of ctrl-1 too: choose another",
	}, problems(c))
}

func TestNamesAreUnique(t *testing.T) {
	t.Parallel()
	c := small()
	c.Nodes = append(c.Nodes, c.Nodes[0])
	assert.Contains(t, problems(c), "nodes.work-1: work-1 is the name of node 2 too: choose another")
}

func TestRepositoryPaths(t *testing.T) {
	t.Parallel()

	for path, taken := range map[string]bool{
		"./": true, ".": true, "clusters/dev": true, "./clusters/dev": true, "clusters/dev/": true,
		"": false, "/": false, "../x": false, "/clusters": false, "a//b": false, "a/../b": false,
	} {
		c := small()
		c.GitOps = spec.GitOps{Provider: spec.Ptr("flux"), Chart: spec.Chart{Version: spec.Ptr("2.18.2")}, Git: spec.Git{
			URL: spec.Ptr("https://git.example.com/a.git"), Path: &path,
		}}
		assert.Equal(t, taken, len(problems(c)) == 0, "%q: %v", path, problems(c))
	}
}
