// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package talos

import (
	"io"
	"net"
	"net/netip"
	"slices"
	"sync"
)

func singlePrefix(a netip.Addr) netip.Prefix { return netip.PrefixFrom(a, a.BitLen()) }

// passThrough connects every connection on l with the address that target names then; "" refuses.
func passThrough(l net.Listener, target func() string) {
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
	remote, err := net.Dial("tcp", at) //nolint:noctx // loopback, ends with the other side
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

// setKubelet tells whether the kubelet has its API server; a control plane's own goes with it.
func (n *node) setKubelet(up bool) {
	n.mu.Lock()
	n.kubelet = up
	stop := n.apiStop
	n.mu.Unlock()

	if isControlPlane(n.config()) && up != (stop != nil) {
		if up {
			stop = n.listenKubernetes()
		} else {
			stop()
			stop = nil
		}
		n.mu.Lock()
		n.apiStop = stop
		n.mu.Unlock()
	}
	n.updateServing()
}

// listenKubernetes passes connections to port 6443 on to the cluster's API server.
func (n *node) listenKubernetes() (stop func()) {
	return n.flapping(func() (stop func()) {
		return n.book.listen(apiPort, func(l net.Listener) { passThrough(l, n.apiAddr) })
	})
}

// apiAddr is where the cluster's API server listens, "" when it does not.
func (n *node) apiAddr() string {
	g, _ := n.group()
	if g == nil || !g.quorum() {
		return ""
	}
	if api, _ := g.kube.api(); api != nil {
		return api.Addr()
	}

	return ""
}

func (n *node) kubeletUp() bool {
	n.mu.Lock()
	defer n.mu.Unlock()

	return n.kubelet
}

func (n *node) setWhy(err error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.why = err
}

// isServing tells whether the node does its part in the cluster: a control plane its API server, a
// worker its kubelet.
func (n *node) isServing() bool {
	n.mu.Lock()
	defer n.mu.Unlock()

	return n.serving
}

func (n *node) updateServing() {
	n.mu.Lock()
	vips := slices.Clone(n.vips) // one that its former holder has not let go yet takes nobody down
	n.mu.Unlock()
	up := n.kubeletUp() && n.book.problem(vips...) == nil
	if up && isControlPlane(n.config()) {
		g, _ := n.group()
		up = g != nil && g.quorum()
	}
	n.setServing(up)
}

// setServing keeps two windows in the trace: node.serving while the node serves, and node.down from
// when it stopped until it serves again, across reboots. The trace has it before anybody can see it, so that
// what is done because of it comes later there too.
func (n *node) setServing(up bool) {
	n.servingMu.Lock()
	n.mu.Lock()
	same, end := n.serving == up, n.served
	n.mu.Unlock()
	if same {
		n.servingMu.Unlock()

		return
	}

	if up {
		end = n.m.Trace.Begin("node.serving", n.object(), n.attrs())
		n.nodes.backUp(n.key())
	} else {
		n.nodes.goneDown(n.key(), n.m.Trace.Begin("node.down", n.object(), n.attrs()))
		if end != nil {
			end(nil) // after the other window is open: no moment is in neither
		}
	}
	n.mu.Lock()
	n.serving, n.served = up, end
	n.mu.Unlock()
	n.servingMu.Unlock()
	n.publishState()
	n.poke()
}

func (ns *Nodes) goneDown(key string, end func(error)) {
	ns.mu.Lock()
	defer ns.mu.Unlock()
	if ns.down[key] == nil {
		ns.down[key] = end
	}
}

func (ns *Nodes) backUp(key string) {
	ns.mu.Lock()
	end := ns.down[key]
	delete(ns.down, key)
	ns.mu.Unlock()

	if end != nil {
		end(nil)
	}
}

// electVIP takes or gives up the cluster's virtual addresses: the first control plane that serves
// holds them, and keeps them as long as it serves.
func (n *node) electVIP() {
	n.mu.Lock()
	vips, held := slices.Clone(n.vips), len(n.heldVIPs)
	n.mu.Unlock()
	if len(vips) == 0 && held == 0 {
		return
	}

	g, _ := n.group()
	want := map[netip.Addr]bool{}
	if g != nil && isControlPlane(n.config()) && n.isServing() {
		for _, ip := range vips {
			if g.holdsVIP(ip, n) {
				want[ip] = true
			}
		}
	}

	n.mu.Lock()
	same := len(want) == len(n.heldVIPs)
	for ip := range want {
		same = same && n.heldVIPs[ip]
	}
	n.heldVIPs = want
	n.mu.Unlock()
	if !same {
		n.applyNetwork()
	}
}

// holdsVIP tells whether n is the holder: whoever has it keeps it, else the first that serves.
func (g *etcdGroup) holdsVIP(ip netip.Addr, n *node) bool {
	nodes := g.running()
	for _, peer := range nodes {
		peer.mu.Lock()
		has := peer.heldVIPs[ip] && peer.serving
		peer.mu.Unlock()
		if has {
			return peer == n
		}
	}
	for _, peer := range nodes {
		peer.mu.Lock()
		may := peer.serving && slices.Contains(peer.vips, ip)
		peer.mu.Unlock()
		if may {
			return peer == n
		}
	}

	return false
}
