// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package scope

import (
	"net"
	"net/netip"
	"net/url"

	"github.com/talos-proxmox/talos-proxmox/internal/check"
	"github.com/talos-proxmox/talos-proxmox/spec"
)

// Known holds an address and what has it.
type Known struct {
	Addr netip.Addr
	// What has it: "the DNS server of cluster.nameservers[0]".
	What string
}

// Outside returns the addresses of machines that are no nodes of the cluster: Proxmox hosts, DNS and time
// servers, BGP peers.
func (s *Scope) Outside() []Known {
	var all []Known
	add := func(text, what string) {
		if a, err := spec.ParseAddr(text); err == nil {
			all = append(all, Known{a, what})
		}
	}
	p := s.Config.Proxmox
	if u, err := url.Parse(spec.Value(p.Endpoint)); err == nil {
		add(u.Hostname(), "the Proxmox host of proxmox.endpoint")
	}
	if p.SSH != nil {
		for _, host := range SortedKeys(p.SSH.Nodes) {
			address := p.SSH.Nodes[host]
			if bare, _, err := net.SplitHostPort(address); err == nil {
				address = bare
			}
			add(address, "the Proxmox host "+host)
		}
	}
	for i, text := range s.Config.Cluster.Nameservers {
		add(text, "the DNS server of "+check.Index("cluster.nameservers", i))
	}
	for i, text := range s.Config.Cluster.TimeServers {
		add(text, "the time server of "+check.Index("cluster.timeServers", i))
	}

	return all
}

// VIP returns the address that control planes share; it is invalid when there is none.
func (s *Scope) VIP() netip.Addr { return addrOf(s.Config.Cluster.VIP) }

// Gateways returns the valid gateways of a card.
func Gateways(n spec.Network) []netip.Addr {
	var all []netip.Addr
	for _, text := range []*string{n.Gateway, n.Gateway6} {
		if a := addrOf(text); a.IsValid() {
			all = append(all, a)
		}
	}

	return all
}

// Loopback reports whether a host is each machine itself.
func Loopback(host string) bool {
	a, err := spec.ParseAddr(host)

	return host == "localhost" || err == nil && (a.IsLoopback() || a.IsUnspecified())
}

// Nobody reports whether a host is an address that no single machine has.
func Nobody(host string) bool {
	a, err := spec.ParseAddr(host)

	return err == nil && (a.IsUnspecified() || a.IsMulticast() || a.String() == "255.255.255.255")
}

func addrOf(text *string) netip.Addr {
	a, _ := spec.ParseAddr(spec.Value(text))

	return a
}

// Prefixes returns the valid networks among the texts.
func Prefixes(texts []string) []netip.Prefix {
	var all []netip.Prefix
	for _, text := range texts {
		if p, err := spec.ParseNetwork(text); err == nil {
			all = append(all, p.Masked())
		}
	}

	return all
}

// Range holds the first and last address of a range within one IP family.
type Range struct{ First, Last netip.Addr }

// RangeOf returns the addresses of a network.
func RangeOf(p netip.Prefix) Range { return Range{p.Masked().Addr(), LastOf(p)} }

// Contains reports whether the range has the address.
func (r Range) Contains(a netip.Addr) bool {
	return a.Is4() == r.First.Is4() && !a.Less(r.First) && !r.Last.Less(a)
}

// Overlaps reports whether the ranges have an address in common.
func (r Range) Overlaps(o Range) bool {
	return r.First.Is4() == o.First.Is4() && !r.Last.Less(o.First) && !o.Last.Less(r.First)
}

// Within reports whether the other range has every address of this one.
func (r Range) Within(o Range) bool { return o.Contains(r.First) && o.Contains(r.Last) }

// PoolRange returns the addresses of a pool of LoadBalancer addresses; false when it names none.
func PoolRange(p spec.CiliumPool) (Range, bool) {
	if network, err := spec.ParseNetwork(spec.Value(p.CIDR)); err == nil {
		return RangeOf(network), true
	}
	start, stop := addrOf(p.Start), addrOf(p.Stop)
	if !start.IsValid() || !stop.IsValid() || start.Is4() != stop.Is4() || stop.Less(start) {
		return Range{}, false
	}

	return Range{start, stop}, true
}

// NodeNetworks returns the networks that nodes have static addresses in, each once.
func (s *Scope) NodeNetworks() []netip.Prefix {
	var all []netip.Prefix
	seen := map[netip.Prefix]bool{}
	for _, n := range s.Config.Nodes {
		for _, d := range n.Devices() {
			for _, p := range d.Prefixes() {
				if p = p.Masked(); !seen[p] {
					seen[p] = true
					all = append(all, p)
				}
			}
		}
	}

	return all
}

// NoMachine returns the nodes' network in which an address is the network's own or its broadcast address, and reports whether there
// is one.
func (s *Scope) NoMachine(a netip.Addr) (netip.Prefix, bool) {
	for _, p := range s.NodeNetworks() {
		if a.Is4() && p.Bits() < 31 && (a == p.Addr() || a == LastOf(p)) {
			return p, true
		}
	}

	return netip.Prefix{}, false
}

// Family returns the IP family's name.
func Family(a netip.Addr) string {
	if a.Is4() {
		return "IPv4"
	}

	return "IPv6"
}
