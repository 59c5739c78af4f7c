// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package networks

import (
	"net/netip"

	"github.com/talos-proxmox/talos-proxmox/internal/check"
	"github.com/talos-proxmox/talos-proxmox/internal/rules/scope"
	"github.com/talos-proxmox/talos-proxmox/spec"
)

// member holds the address that a node has in a network with a subnet.
type member struct {
	path    string
	address netip.Addr
}

// CheckShared records a subnet that has none of the addresses which several nodes have in it: then the subnet is the mistake, and
// no address is.
func CheckShared(s *scope.Scope) {
	inside, outside := map[string]int{}, map[string][]member{}
	note := func(path, name string, address, subnet *string) {
		network, err := spec.ParseNetwork(spec.Value(subnet))
		if err != nil || address == nil || s.Wrong(path) {
			return
		}
		a, err := spec.ParsePrefix(*address, spec.Value(subnet))
		if err != nil || a.Addr().Is4() != network.Addr().Is4() {
			return
		}
		key := name + " " + network.String()
		if network.Contains(a.Addr()) {
			inside[key]++
		} else {
			outside[key] = append(outside[key], member{path, a.Addr()})
		}
	}
	for _, n := range s.Config.Nodes {
		for _, name := range scope.SortedKeys(n.Networks) {
			at, network := check.Key(scope.NodePath(n)+".networks", name), n.Networks[name]
			note(at+".subnet", name, network.Address, network.Subnet)
			note(at+".subnet6", name, network.Address6, network.Subnet6)
		}
	}
	for _, key := range scope.SortedKeys(outside) {
		if members := outside[key]; len(members) > 1 && inside[key] == 0 {
			for _, m := range members {
				s.Addf(m.path, "has none of the addresses that nodes have in it, such as %s: write their network", members[0].address)
			}
		}
	}
}
