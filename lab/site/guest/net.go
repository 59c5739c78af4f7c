// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package guest

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"strings"
	"sync"
	"syscall"
)

// ErrAddressInUse is returned by [Net.Up] when another machine already holds the address.
var ErrAddressInUse = errors.New("address already in use on this network")

// Net plays the site's network: which addresses are up, and who listens on them. Every listener is a
// real one on loopback; [Net.DialContext] leads an address of the site to it.
type Net struct {
	mu        sync.Mutex
	up        map[netip.Addr]string
	listeners map[string]*listener
	catches   []catch
	blocked   func(host string) bool
	routes    routes
}

// catch serves every name and port that match holds for.
type catch struct {
	match func(host string, port uint16) bool
	serve func(conn net.Conn, host string)
}

// NewNet returns a network on which nothing is up.
func NewNet() *Net {
	return &Net{
		up: map[netip.Addr]string{}, listeners: map[string]*listener{},
		routes: routes{routers: map[netip.Prefix]netip.Addr{}, stray: map[string]map[bool]bool{}},
	}
}

// Up brings an address up for owner and returns how to take it down again. It fails with
// [ErrAddressInUse] when another owner holds the address.
func (n *Net) Up(addr netip.Addr, owner string) (down func(), err error) {
	n.mu.Lock()
	defer n.mu.Unlock()

	if have, ok := n.up[addr]; ok && have != owner {
		return nil, fmt.Errorf("%s: %w, held by %s", addr, ErrAddressInUse, have)
	}
	n.up[addr] = owner

	return sync.OnceFunc(func() {
		n.mu.Lock()
		defer n.mu.Unlock()

		if n.up[addr] == owner {
			delete(n.up, addr)
		}
	}), nil
}

// Owner tells who holds an address, or "" when it is not up.
func (n *Net) Owner(addr netip.Addr) string {
	n.mu.Lock()
	defer n.mu.Unlock()

	return n.up[addr]
}

// Listen listens on a name or address of the site, "10.0.0.1:50000" or "factory.talos.dev:443".
func (n *Net) Listen(address string) (net.Listener, error) {
	address = strings.ToLower(address)

	n.mu.Lock()
	defer n.mu.Unlock()

	if _, ok := n.listeners[address]; ok {
		return nil, fmt.Errorf("listen %s: %w", address, syscall.EADDRINUSE)
	}

	inner, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("listen %s: %w", address, err)
	}

	l := &listener{Listener: inner, net: n, address: address}
	n.listeners[address] = l

	return l, nil
}

// Catch serves names and ports that nobody listens on and match holds for: serve gets each connection
// and the name that was dialled, and owns the connection. The first rule that matches wins; an address
// that is up is never caught.
func (n *Net) Catch(match func(host string, port uint16) bool, serve func(conn net.Conn, host string)) {
	n.mu.Lock()
	defer n.mu.Unlock()

	n.catches = append(n.catches, catch{match: match, serve: serve})
}

// Block makes names and addresses unreachable for which blocked holds. Set it before the network is in
// use.
func (n *Net) Block(blocked func(host string) bool) { n.blocked = blocked }

// DialContext connects to a name or address of the site. An address that is up but has no listener
// refuses; one that is not up has no route. It never leaves loopback.
func (n *Net) DialContext(ctx context.Context, _, address string) (net.Conn, error) {
	address = strings.ToLower(address)
	if host, _, err := net.SplitHostPort(address); err == nil && n.blocked != nil && n.blocked(host) {
		return nil, &net.OpError{Op: "dial", Net: "tcp", Err: fmt.Errorf("%s: %w", address, syscall.EHOSTUNREACH)}
	}

	n.mu.Lock()
	l, catches := n.listeners[address], n.catches
	n.mu.Unlock()

	if l == nil {
		if conn := n.caught(catches, address); conn != nil {
			return conn, nil
		}

		return nil, &net.OpError{Op: "dial", Net: "tcp", Err: n.unreachable(address)}
	}

	var d net.Dialer

	return d.DialContext(ctx, "tcp", l.Addr().String())
}

func (n *Net) caught(catches []catch, address string) net.Conn {
	host, portText, err := net.SplitHostPort(address)
	if err != nil {
		return nil
	}
	port, err := strconv.ParseUint(portText, 10, 16)
	if err != nil {
		return nil
	}
	if addr, err := netip.ParseAddr(host); err == nil && n.Owner(addr) != "" {
		return nil
	}

	for _, c := range catches {
		if c.match(host, uint16(port)) {
			client, server := net.Pipe()
			go c.serve(server, host)

			return client
		}
	}

	return nil
}

func (n *Net) unreachable(address string) error {
	ap, err := netip.ParseAddrPort(address)
	if err != nil {
		return fmt.Errorf("lookup %s: no such host in this site", address)
	}

	if n.Owner(ap.Addr()) != "" {
		return fmt.Errorf("%s: %w", address, syscall.ECONNREFUSED)
	}

	return fmt.Errorf("%s: %w", address, syscall.EHOSTUNREACH)
}

type listener struct {
	net.Listener
	net     *Net
	address string
}

// Close stops listening and frees the site's address.
func (l *listener) Close() error {
	l.net.mu.Lock()
	if l.net.listeners[l.address] == l {
		delete(l.net.listeners, l.address)
	}
	l.net.mu.Unlock()

	return l.Listener.Close()
}
