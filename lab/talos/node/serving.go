// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package node

import (
	"net"
	"net/netip"
	"slices"

	"github.com/talos-proxmox/talos-proxmox/lab/talos/machineconfig"
	"github.com/talos-proxmox/talos-proxmox/lab/talos/nodenet"
)

// setKubelet reports whether the kubelet has its API server; a control plane's own goes with it.
func (n *Node) setKubelet(up bool) {
	n.mu.Lock()
	n.kubelet = up
	n.registered = n.registered || up
	stop := n.apiStop
	n.mu.Unlock()

	if machineconfig.IsControlPlane(n.Config()) && up != (stop != nil) {
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
func (n *Node) listenKubernetes() (stop func()) {
	return n.flapping(func() (stop func()) {
		return n.Book.Listen(apiPort, func(l net.Listener) { nodenet.Relay(l, n.apiAddr) })
	})
}

// apiAddr returns where the cluster's API server listens, "" when it does not.
func (n *Node) apiAddr() string {
	g, _ := n.Group()
	if g == nil || !g.Quorum() {
		return ""
	}
	if api, _ := g.Kube.API(); api != nil {
		return api.Addr()
	}

	return ""
}

func (n *Node) kubeletUp() bool {
	n.mu.Lock()
	defer n.mu.Unlock()

	return n.kubelet
}

func (n *Node) setWhy(err error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.why = err
}

// isServing reports whether the node does its part in the cluster: a control plane its API server, a
// worker its kubelet.
func (n *Node) isServing() bool {
	n.mu.Lock()
	defer n.mu.Unlock()

	return n.serving
}

func (n *Node) updateServing() {
	n.mu.Lock()
	vips := slices.Clone(n.vips) // one that its former holder has not let go yet takes nobody down
	n.mu.Unlock()
	up := n.kubeletUp() && n.Book.Problem(vips...) == nil
	if up && machineconfig.IsControlPlane(n.Config()) {
		g, _ := n.Group()
		up = g != nil && g.Quorum()
	}
	n.setServing(up)
}

// setServing keeps two windows in the trace: node.serving while the node serves, and node.down from
// when it stopped until it serves again, across reboots. The trace has it before anybody can see it, so that
// what is done because of it comes later there too.
func (n *Node) setServing(up bool) {
	n.servingMu.Lock()
	n.mu.Lock()
	same, end := n.serving == up, n.served
	n.mu.Unlock()
	if same {
		n.servingMu.Unlock()

		return
	}

	if up {
		end = n.VM.Trace.Begin("node.serving", n.Object(), n.Attrs())
		n.Nodes.backUp(n.key())
	} else {
		n.Nodes.goneDown(n.key(), n.VM.Trace.Begin("node.down", n.Object(), n.Attrs()))
		if end != nil {
			end(nil) // after the other window is open: no moment is in neither
		}
	}
	n.mu.Lock()
	n.serving, n.served = up, end
	n.mu.Unlock()
	n.servingMu.Unlock()
	n.PublishState()
	n.Poke()
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
func (n *Node) electVIP() {
	n.mu.Lock()
	vips, held := slices.Clone(n.vips), len(n.heldVIPs)
	n.mu.Unlock()
	if len(vips) == 0 && held == 0 {
		return
	}

	g, _ := n.Group()
	want := map[netip.Addr]bool{}
	if g != nil && machineconfig.IsControlPlane(n.Config()) && n.isServing() {
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

// holdsVIP reports whether n is the holder: whoever has it keeps it, else the first that serves.
func (g *EtcdCluster) holdsVIP(ip netip.Addr, n *Node) bool {
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
