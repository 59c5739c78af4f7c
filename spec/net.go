// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package spec

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strconv"
	"strings"
)

// ParseAddr reads an IP address. One with a zone means something on one machine alone, and is refused.
func ParseAddr(text string) (netip.Addr, error) {
	a, err := netip.ParseAddr(text)
	if err != nil || a.Zone() != "" {
		return netip.Addr{}, fmt.Errorf("%q is not an IP address", text)
	}

	return a, nil
}

// ParseNetwork reads a network: "10.0.0.0/24". Whether bits of a host are set is for the caller to judge.
func ParseNetwork(text string) (netip.Prefix, error) {
	p, err := netip.ParsePrefix(text)
	if err != nil {
		return netip.Prefix{}, fmt.Errorf("%q is not a network such as 10.0.0.0/24", text)
	}

	return p, nil
}

// ParsePrefix reads "10.0.0.11/24", or "10.0.0.11" within subnet "10.0.0.0/24".
func ParsePrefix(address, subnet string) (netip.Prefix, error) {
	if strings.Contains(address, "/") {
		p, err := netip.ParsePrefix(address)
		if err != nil {
			return netip.Prefix{}, fmt.Errorf("%q is not an address with a prefix length such as 10.0.0.11/24", address)
		}

		return p, nil
	}

	a, err := ParseAddr(address)
	if err != nil {
		return netip.Prefix{}, err
	}
	if subnet == "" {
		return netip.Prefix{}, fmt.Errorf(
			"%q has no prefix length: write %s/24, or give the network's subnet", address, address)
	}
	s, err := ParseNetwork(subnet)
	if err != nil {
		return netip.Prefix{}, fmt.Errorf("%q has no prefix length, and the subnet %q is no network", address, subnet)
	}

	if a.Is4() != s.Addr().Is4() {
		return netip.Prefix{}, fmt.Errorf("%q is of another IP family than the subnet %s", address, s)
	}

	return netip.PrefixFrom(a, s.Bits()), nil
}

// sortedKeys returns a map's keys in order.
func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

// numberSlots gives every name a number: the one it says, else the lowest one from first on that
// nobody says and no earlier name was given.
func numberSlots(names []string, said func(string) *int, first int) map[string]int {
	slots := make(map[string]int, len(names))
	taken := map[int]bool{}
	for _, name := range names {
		if n := said(name); n != nil {
			slots[name], taken[*n] = *n, true
		}
	}
	next := first
	for _, name := range names {
		if said(name) != nil {
			continue
		}
		for taken[next] {
			next++
		}
		slots[name], taken[next] = next, true
	}

	return slots
}

// diskInterface returns the disk's slot as Proxmox names it.
func diskInterface(d Disk) string { return Value(d.Type) + strconv.Itoa(Value(d.UnitNumber)) }
