// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package guest

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"syscall"
	"time"
)

// lostPackets is how long a caller waits for an answer that finds no way back, in real time as all that a program waits for.
const lostPackets = 5 * time.Second

// routes hold how machines reach what is outside their subnets. Nobody defines the site's routers: the first gateway that a
// machine of a subnet has is its router, unless a machine has that address.
type routes struct {
	routers map[netip.Prefix]netip.Addr
	// stray are the owners of addresses that have no way out, by address family.
	stray map[string]map[bool]bool
}

// Route says with which addresses and default gateways a machine reaches what is outside its subnets. One whose gateways are
// all wrong reaches nobody there, and nobody there reaches it; one without a gateway is left alone.
func (n *Net) Route(owner string, addresses []netip.Prefix, gateways []netip.Addr) {
	n.mu.Lock()
	defer n.mu.Unlock()

	stray := map[bool]bool{}
	for _, six := range []bool{false, true} {
		own := slices.DeleteFunc(slices.Clone(gateways), func(g netip.Addr) bool { return g.Is6() != six })
		stray[six] = len(own) > 0 && !slices.ContainsFunc(own, func(g netip.Addr) bool { return n.routesBy(addresses, g) })
	}
	n.routes.stray[owner] = stray
}

// routesBy reports whether a gateway is the router of one of the addresses' subnets.
func (n *Net) routesBy(addresses []netip.Prefix, gateway netip.Addr) bool {
	for _, p := range addresses {
		subnet := p.Masked()
		if p.IsSingleIP() || !subnet.Contains(gateway) {
			continue
		}
		router, known := n.routes.routers[subnet]
		if !known && n.up[gateway] == "" {
			router = gateway
			n.routes.routers[subnet] = router
		}
		if router == gateway {
			return true
		}
	}

	return false
}

// Stray reports whether a machine has no way out of its subnets towards an address; a name is outside and has the first
// family.
func (n *Net) Stray(owner, host string) bool {
	address, err := netip.ParseAddr(host)
	n.mu.Lock()
	defer n.mu.Unlock()

	return n.routes.stray[owner][err == nil && address.Is6()]
}

// DialFromOutside is [Net.DialContext] for who is in none of the machines' subnets: what a machine without a way out answers is
// lost.
func (n *Net) DialFromOutside(ctx context.Context, network, address string) (net.Conn, error) {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return n.DialContext(ctx, network, address)
	}
	at, err := netip.ParseAddr(host)
	if err != nil || !n.Stray(n.Owner(at), host) {
		return n.DialContext(ctx, network, address)
	}
	timer := time.NewTimer(lostPackets)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}

	return nil, &net.OpError{Op: "dial", Net: "tcp", Err: fmt.Errorf("%s: %w", address, syscall.ETIMEDOUT)}
}
