// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package nodenet

import (
	"context"
	"maps"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/talos-proxmox/talos-proxmox/lab/site/guest"
)

// AddressBook holds a node's addresses on the site's network and the listeners on them. An address
// that another machine holds is asked for again and again, as two machines with one address keep
// fighting for it.
type AddressBook struct {
	net   *guest.Net
	owner string

	mu       sync.Mutex
	want     []netip.Prefix
	up       map[netip.Addr]func()
	conflict map[netip.Addr]error
	ports    map[int]func(net.Listener)
	open     map[string]net.Listener
	lets     func(port int) bool // in; nil: all
}

func NewAddressBook(n *guest.Net, owner string) *AddressBook {
	return &AddressBook{
		net: n, owner: owner,
		up: map[netip.Addr]func(){}, conflict: map[netip.Addr]error{},
		ports: map[int]func(net.Listener){}, open: map[string]net.Listener{},
	}
}

// Route says over which default gateways the node reaches what is outside the subnets of its addresses.
func (b *AddressBook) Route(addresses []netip.Prefix, gateways []netip.Addr) {
	b.net.Route(b.owner, addresses, gateways)
}

// Stray reports whether the node has no way to a host, which is none of its subnets'.
func (b *AddressBook) Stray(host string) bool {
	if at, err := netip.ParseAddr(host); err == nil {
		b.mu.Lock()
		defer b.mu.Unlock()
		if slices.ContainsFunc(b.want, func(p netip.Prefix) bool { return p.Masked().Contains(at) }) {
			return false
		}
	}

	return b.net.Stray(b.owner, host)
}

// Set brings exactly the given addresses up.
func (b *AddressBook) Set(want []netip.Prefix) {
	b.mu.Lock()
	defer b.mu.Unlock()

	b.want = b.want[:0:0]
	keep := map[netip.Addr]bool{}
	for _, p := range want {
		if !keep[p.Addr()] {
			keep[p.Addr()] = true
			b.want = append(b.want, p)
		}
	}

	for addr := range b.up {
		if !keep[addr] {
			b.takeDown(addr)
		}
	}
	b.bringUp()
}

func (b *AddressBook) takeDown(addr netip.Addr) {
	for port := range b.ports {
		b.closeListener(HostPort(addr, port))
	}
	b.up[addr]()
	delete(b.up, addr)
}

func (b *AddressBook) bringUp() {
	b.conflict = map[netip.Addr]error{}
	for _, p := range b.want {
		addr := p.Addr()
		if b.up[addr] == nil {
			down, err := b.net.Up(addr, b.owner)
			if err != nil {
				b.conflict[addr] = err

				continue
			}
			b.up[addr] = down
		}
		for port := range b.ports {
			b.openListener(addr, port)
		}
	}
}

// Filter has the node's firewall let connections in to the ports for which lets holds. Those that are open stay, as
// Talos's firewall accepts what is established.
func (b *AddressBook) Filter(lets func(port int) bool) {
	b.mu.Lock()
	defer b.mu.Unlock()

	b.lets = lets
	for addr := range b.up {
		for port := range b.ports {
			if lets(port) {
				b.openListener(addr, port)
			} else {
				b.closeListener(HostPort(addr, port))
			}
		}
	}
}

func (b *AddressBook) openListener(addr netip.Addr, port int) {
	at := HostPort(addr, port)
	if b.open[at] != nil || b.lets != nil && !b.lets(port) {
		return
	}
	if l, err := b.net.Listen(at); err == nil {
		b.open[at] = l
		go b.ports[port](l)
	}
}

func (b *AddressBook) closeListener(at string) {
	if l := b.open[at]; l != nil {
		_ = l.Close() // the address is going away either way
		delete(b.open, at)
	}
}

// Listen serves a port on every address, those that come later too. Serve must return when its
// listener closes.
func (b *AddressBook) Listen(port int, serve func(net.Listener)) (stop func()) {
	b.mu.Lock()
	defer b.mu.Unlock()

	b.ports[port] = serve
	b.bringUp()

	return sync.OnceFunc(func() {
		b.mu.Lock()
		defer b.mu.Unlock()

		delete(b.ports, port)
		for _, at := range slices.Collect(maps.Keys(b.open)) {
			if _, p, err := net.SplitHostPort(at); err == nil && p == strconv.Itoa(port) {
				b.closeListener(at)
			}
		}
	})
}

// Addresses returns those that are up, in the order in which they were asked for.
func (b *AddressBook) Addresses() []netip.Prefix {
	b.mu.Lock()
	defer b.mu.Unlock()

	var out []netip.Prefix
	for _, p := range b.want {
		if b.up[p.Addr()] != nil {
			out = append(out, p)
		}
	}

	return out
}

// Wanted returns all addresses that should be up.
func (b *AddressBook) Wanted() []netip.Prefix {
	b.mu.Lock()
	defer b.mu.Unlock()

	return slices.Clone(b.want)
}

// Problem returns why an address that should be up is not, nil when all are. Some addresses may be down.
func (b *AddressBook) Problem(but ...netip.Addr) error {
	b.mu.Lock()
	defer b.mu.Unlock()

	for _, p := range b.want {
		if err := b.conflict[p.Addr()]; err != nil && !slices.Contains(but, p.Addr()) {
			return err
		}
	}

	return nil
}

// Run asks again for addresses that were taken, until ctx ends; then everything goes down.
func (b *AddressBook) Run(ctx context.Context) {
	t := time.NewTicker(250 * time.Millisecond)
	defer t.Stop()

	for {
		select {
		case <-ctx.Done():
			b.Set(nil)

			return
		case <-t.C:
			b.mu.Lock()
			if len(b.conflict) > 0 {
				b.bringUp()
			}
			b.mu.Unlock()
		}
	}
}

func HostPort(addr netip.Addr, port int) string {
	return netip.AddrPortFrom(addr, uint16(port)).String() // ports are constants below 65536
}
