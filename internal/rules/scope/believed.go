// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package scope

import (
	"maps"
	"slices"

	"github.com/talos-proxmox/talos-proxmox/internal/check"
	"github.com/talos-proxmox/talos-proxmox/spec"
)

// Believed returns the scope without the addresses and networks of nodes that are wrong by themselves: what they are beside other
// settings would only follow from that.
func (s *Scope) Believed() *Scope {
	believed := *s
	believed.Config.Nodes = slices.Clone(s.Config.Nodes)
	for i, n := range believed.Config.Nodes {
		networks := maps.Clone(n.Networks)
		for name, network := range networks {
			networks[name] = s.believed(check.Key(NodePath(n)+".networks", name), network)
		}
		believed.Config.Nodes[i].Networks = networks
	}

	return &believed
}

// believed returns a network without what is wrong in it.
func (s *Scope) believed(at string, network spec.Network) spec.Network {
	if s.Wrong(at+".address", at+".subnet") {
		network.Address = nil
	}
	if s.Wrong(at+".address6", at+".subnet6") {
		network.Address6 = nil
	}

	return network
}
