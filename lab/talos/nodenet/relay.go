// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package nodenet

import (
	"io"
	"net"
	"net/netip"
	"sync"
)

// Relay connects every connection on l with the address that target names then; "" refuses.
func Relay(l net.Listener, target func() string) {
	var mu sync.Mutex
	open := map[net.Conn]bool{}
	defer func() {
		mu.Lock()
		defer mu.Unlock()
		for c := range open {
			_ = c.Close() // the listener is gone, and its connections with it
		}
	}()

	for {
		c, err := l.Accept()
		if err != nil {
			return
		}
		at := target()
		if at == "" {
			_ = c.Close() // refused

			continue
		}
		mu.Lock()
		open[c] = true
		mu.Unlock()

		go func() {
			defer func() {
				_ = c.Close() // may be closed already
				mu.Lock()
				delete(open, c)
				mu.Unlock()
			}()
			connect(c, at)
		}()
	}
}

func connect(c net.Conn, at string) {
	remote, err := net.Dial("tcp", at) // loopback, ends with the other side
	if err != nil {
		return
	}

	done := make(chan struct{})
	go func() {
		defer close(done)
		_, _ = io.Copy(remote, c) // either side may hang up
		_ = remote.Close()
	}()
	_, _ = io.Copy(c, remote) // either side may hang up
	_ = c.Close()
	<-done
}

func SinglePrefix(a netip.Addr) netip.Prefix { return netip.PrefixFrom(a, a.BitLen()) }
