// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package stack

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/talos-proxmox/talos-proxmox/internal/check"
	"github.com/talos-proxmox/talos-proxmox/spec"
)

// expandPool makes the pool's nodes: counted ones or members.
func (e *expansion) expandPool(name string, p Pool) {
	path := check.Key("pools", name)
	e.checkPool(path, p)
	if len(p.Members) > 0 {
		for i, m := range p.Members {
			e.addMember(check.Index(path+".members", i), path, cmp.Or(spec.Value(p.Prefix), name), p, m)
		}

		return
	}

	subnets := e.poolDefaults(layer{path: path, node: p.Node}).Networks
	numbers := Pool{First: p.First}
	spec.FillDefaults(&numbers)
	first := *numbers.First
	if first < 0 || first > maxFirst || spec.Value(p.Count) > maxCount {
		return // out of bounds, which was reported
	}
	for number, left := first, spec.Value(p.Count); left > 0; number++ {
		if slices.Contains(p.Skip, number) {
			continue
		}
		left--
		node := spec.Clone(p.Node)
		e.moveAddresses(path, node, subnets, number-first)
		e.addPooled(numbered(cmp.Or(spec.Value(p.Prefix), name), number), path, number, p, layer{path: path, node: node})
	}
}

// poolDefaults returns what a node of the pool is by the pool and what is more general.
func (e *expansion) poolDefaults(specific ...layer) spec.Node {
	all, role := e.general(specific)
	all = append(all, roleLayer(e.file.Defaults, role))
	if size, ok := e.size(slices.Concat(all, specific)); ok {
		all = append(all, size)
	}

	return layers{all: slices.Concat(all, specific)}.merged()
}

func (e *expansion) checkPool(path string, p Pool) {
	switch {
	case p.Count != nil && len(p.Members) > 0:
		e.problems.Addf(path, "has both count and members: keep one")
	case p.Count == nil && p.Members == nil:
		e.problems.Addf(path, "needs count or members: say how many nodes the pool has, or list them")
	}
	if len(p.Members) > 0 && (len(p.Skip) > 0 || p.First != nil) {
		e.problems.Addf(path, "first and skip are for counted nodes: leave them out where members are listed")
	}
	seen := map[int]bool{}
	for i, n := range p.Skip {
		if seen[n] {
			e.problems.Addf(check.Index(path+".skip", i), "%d is listed twice", n)
		}
		seen[n] = true
	}
}

// The bounds of a pool's numbers, as its tags say.
const (
	maxCount = 10000
	maxFirst = 1000000
)

// numbered returns the name of a pool's node.
func numbered(prefix string, number int) string { return fmt.Sprintf("%s-%02d", prefix, number) }

// addPooled adds a node of a pool, with its entry in nodes over it.
func (e *expansion) addPooled(name, own string, number int, p Pool, specific ...layer) {
	if p.VMIDBase != nil && !slices.ContainsFunc(specific, func(l layer) bool { return l.node.VMID != nil }) {
		id := *p.VMIDBase + number
		specific[0].node.VMID, specific[0].vmidFrom = &id, "vmIdBase"
	}
	if override, ok := e.file.Nodes[name]; ok {
		specific = append(specific, layer{path: check.Key("nodes", name), node: override})
	}
	e.add(name, own, placed{specific[0].path, p.Hosts}, specific...)
}

// addMember adds a node that the pool lists. Its identity is its name or, without one, its first
// address.
func (e *expansion) addMember(own, path, prefix string, p Pool, m Member) {
	pool := layer{path: path, node: spec.Clone(p.Node)}
	member := layer{path: own, node: m.Node}
	if m.Name != nil {
		number, _ := spec.NumberOf(*m.Name)
		e.addPooled(*m.Name, own, number, p, pool, member)

		return
	}

	number, ok := hostPart(e.poolDefaults(pool, member))
	if !ok {
		e.problems.Addf(own,
			"has neither a name nor a static address that could give it one: write name, or an address with "+
				"its prefix length")

		return
	}
	e.addPooled(numbered(prefix, number), own, number, p, pool, member)
}

// maxHostPart keeps numbers made of addresses short.
const maxHostPart = 1 << 20

// hostPart returns the number of the node's first address within its network.
func hostPart(n spec.Node) (int, bool) {
	_, network := spec.NamedNode{Node: n}.PrimaryNetwork()
	all := network.Prefixes()
	if len(all) == 0 {
		return 0, false
	}
	bytes, base := all[0].Addr().AsSlice(), all[0].Masked().Addr().AsSlice()
	for i := range bytes {
		bytes[i] -= base[i] & bytes[i]
	}
	low := binary.BigEndian.Uint32(bytes[len(bytes)-4:])

	return int(low), low < maxHostPart
}

// moveAddresses turns the pool's first addresses into those of the node that is `by` places further on.
func (e *expansion) moveAddresses(path string, n spec.Node, all map[string]spec.Network, by int) {
	for name, network := range n.Networks {
		at := check.Key(path+".networks", name)
		network.Address = e.moved(at+".address", network.Address, all[name].Subnet, by)
		network.Address6 = e.moved(at+".address6", network.Address6, all[name].Subnet6, by)
		n.Networks[name] = network
	}
}

func (e *expansion) moved(path string, address, subnet *string, by int) *string {
	if address == nil || by == 0 {
		return address
	}
	one := spec.Network{Address: address, Subnet: subnet}.Prefixes() // of either IP family
	if len(one) == 0 {
		return address // what is no address is reported by the rules
	}
	moved, ok := addrPlus(one[0].Addr(), by)
	if !ok || !one[0].Contains(moved) {
		e.problems.Addf(path,
			"%s is too late in %s for all of the pool's nodes: start earlier, or take a larger network",
			one[0].Addr(), one[0].Masked())

		return address
	}
	text := moved.String()
	if strings.Contains(*address, "/") {
		text = netip.PrefixFrom(moved, one[0].Bits()).String()
	}

	return &text
}

// addrPlus returns the address that many further on.
func addrPlus(a netip.Addr, by int) (netip.Addr, bool) {
	bytes := a.AsSlice()
	carry := uint64(by)
	for i := len(bytes) - 1; i >= 0 && carry > 0; i-- {
		carry += uint64(bytes[i])
		bytes[i] = byte(carry)
		carry >>= 8
	}
	if carry > 0 {
		return netip.Addr{}, false
	}

	return netip.AddrFromSlice(bytes)
}
