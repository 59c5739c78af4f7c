// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package addons

import (
	"fmt"
	"net/netip"
	"slices"

	"github.com/talos-proxmox/talos-proxmox/internal/check"
	"github.com/talos-proxmox/talos-proxmox/internal/rules/scope"
	"github.com/talos-proxmox/talos-proxmox/spec"
)

// pools checks the pools of LoadBalancer addresses by themselves and against each other.
func (r *rules) pools(c spec.Cilium) {
	type named struct {
		name      string
		addresses scope.Range
	}
	var before []named
	for _, name := range scope.SortedKeys(c.Pools) {
		at := check.Key("cni.cilium.pools", name)
		r.objectName(at, name)
		r.pool(at, c.Pools[name])
		addresses, ok := scope.PoolRange(c.Pools[name])
		if !ok {
			continue
		}
		for _, b := range before {
			if b.addresses.Overlaps(addresses) {
				r.Addf(at, "has addresses of the pool %s too: give each pool its own", b.name)
			}
		}
		before = append(before, named{name, addresses})
		if !r.Wrong(at) {
			r.poolOnWire(at, c, addresses)
		}
	}
}

// objectName checks a name that an object in Kubernetes gets.
func (r *rules) objectName(at, name string) {
	if !scope.LabelForm.MatchString(name) {
		r.Addf(at, "%q is no name that Kubernetes takes: use lower-case letters, digits and dashes", name)
	}
}

// poolApart records addresses of a pool that something else has.
func (r *rules) poolApart(path string, pool scope.Range) {
	if held := r.heldBy(pool); len(held) > 0 {
		more := ""
		if len(held) > 1 {
			more = fmt.Sprintf(", and %d more that are taken", len(held)-1)
		}
		r.Addf(path, "holds %s%s: choose addresses that nothing has", held[0], more)

		return
	}
	r.poolFamily(path, pool)
	for _, odd := range []netip.Addr{pool.First, pool.Last} {
		if odd.IsLoopback() || odd.IsMulticast() || odd.IsUnspecified() || odd.IsLinkLocalUnicast() {
			r.Addf(path, "holds %s, which no service can have: choose addresses of the nodes' network", odd)

			return
		}
	}
}

// poolFamily checks a pool against the networks of pods and services.
func (r *rules) poolFamily(path string, pool scope.Range) {
	services := scope.Prefixes(r.Config.Cluster.ServiceSubnets)
	sameFamily := slices.ContainsFunc(services, func(p netip.Prefix) bool { return p.Addr().Is4() == pool.First.Is4() })
	for _, p := range append(scope.Prefixes(r.Config.Cluster.PodSubnets), services...) {
		if pool.Overlaps(scope.RangeOf(p)) && !r.Wrong("cluster.podSubnets", "cluster.serviceSubnets") {
			r.Addf(path, "overlaps %s, a network of pods or services: choose addresses of the nodes' network", p)
		}
	}
	if len(services) > 0 && !sameFamily && !r.Wrong("cluster.podSubnets", "cluster.serviceSubnets", path) {
		r.Addf(path, "holds %s addresses, and services have none of that family: choose addresses of the family of cluster.serviceSubnets",
			scope.Family(pool.First))
	}
}

// heldBy returns what has addresses of the pool: nodes, gateways, the VIP, other machines.
func (r *rules) heldBy(pool scope.Range) []string {
	var held []string
	seen := map[netip.Addr]bool{}
	add := func(a netip.Addr, what string) {
		if a.IsValid() && pool.Contains(a) && !seen[a] {
			seen[a] = true
			held = append(held, fmt.Sprintf("%s, %s", a, what))
		}
	}
	add(r.VIP(), "the cluster's VIP")
	for _, n := range r.Config.Nodes {
		for _, a := range n.Addresses() {
			add(a, "the address of node "+n.Name)
		}
	}
	for _, n := range r.Config.Nodes {
		for _, d := range n.Devices() {
			for _, g := range scope.Gateways(d.Network) {
				add(g, "a gateway")
			}
		}
	}
	for _, other := range r.Outside() {
		add(other.Addr, other.What)
	}
	if peers := r.peersIn(pool); len(peers) > 1 || len(held) > 0 { // one alone is told at the peer
		for _, a := range peers {
			add(a, "a BGP peer")
		}
	}

	return held
}

// peersIn returns the addresses of BGP peers that a pool has.
func (r *rules) peersIn(pool scope.Range) []netip.Addr {
	c := r.Config.CNI.Cilium
	if c == nil || c.BGP == nil {
		return nil
	}
	var all []netip.Addr
	for _, name := range scope.SortedKeys(c.BGP.Peers) {
		if a, err := spec.ParseAddr(c.BGP.Peers[name].Address); err == nil && pool.Contains(a) {
			all = append(all, a)
		}
	}

	return all
}

// poolOnWire checks that addresses which are announced on layer 2 are of a network that nodes are in.
func (r *rules) poolOnWire(path string, c spec.Cilium, pool scope.Range) {
	for _, n := range r.Config.Nodes {
		if r.Wrong(scope.NodePath(n) + ".networks") {
			return
		}
	}
	networks := r.NodeNetworks()
	if c.L2 == nil || c.BGP != nil || len(networks) == 0 {
		return
	}
	for _, p := range networks {
		if pool.Within(scope.RangeOf(p)) {
			if own, last := p.Masked().Addr(), scope.LastOf(p); p.Addr().Is4() && p.Bits() < 31 && (pool.First == own || pool.Last == last) &&
				spec.Value(c.Pools[check.Elements(path)[3]].Start) != "" {
				r.Addf(path, "holds the network's own or broadcast address of %s, which cannot be reached: begin or end it one address apart", p)
			}

			return
		}
	}
	r.Addf(path, "is outside the nodes' network %s, and cni.cilium.l2 announces on it alone, so that nobody would reach the addresses: "+
		"choose addresses of that network", networks[0])
}
