// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

// Package networks holds the rules about names, addresses and networks, and about what no two nodes may share.
package networks

import (
	"github.com/talos-proxmox/talos-proxmox/internal/rules/scope"
	"github.com/talos-proxmox/talos-proxmox/spec"
)

// rules look at one configuration.
type rules struct{ *scope.Scope }

// Check records what is wrong with names, addresses and networks of the cluster.
func Check(s *scope.Scope) {
	r := &rules{s}
	r.cluster()
	r.endpoint()
	r.vip()
	r.taken()
	r.shares()
	r.subnets()
	r.servers()
	r.podsPerNode()
	r.hostsApart()
	r.unique()
}

// CheckNode records what is wrong with a node's networks.
func CheckNode(s *scope.Scope, n spec.NamedNode) { (&rules{s}).networks(scope.NodePath(n), n) }
