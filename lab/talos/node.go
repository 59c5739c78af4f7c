// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package talos

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/cosi-project/runtime/pkg/state"
	"github.com/siderolabs/talos/pkg/machinery/config"

	"github.com/talos-proxmox/talos-proxmox/lab/site/guest"
)

// node is one power cycle of one machine.
type node struct {
	nodes *Nodes
	m     *guest.Machine
	image guest.Image
	// disk is nil until Talos is installed.
	disk     *systemDisk
	links    []link
	book     *addressBook
	events   *eventLog
	services *serviceTable
	state    state.State
	bootID   string
	started  time.Time
	requests chan request
	bootMu   sync.Mutex
	// installing is held while an installer runs.
	installing sync.Mutex
	pubMu      sync.Mutex
	// servingMu is held while the node begins or ceases to serve; taken before mu.
	servingMu sync.Mutex

	mu    sync.Mutex
	cfg   config.Provider
	stage string

	persisted     config.Provider
	persistedData []byte

	problem  error
	poked    chan struct{}
	left     bool
	ending   bool
	etcd     *etcdGroup
	etcdID   uint64
	vips     []netip.Addr
	heldVIPs map[netip.Addr]bool
	serving  bool
	kubelet  bool
	apiStop  func()
	criReady bool
	upload   []byte
	images   []string
	pki      *apiPKI
	why      error
	served   func(error)
	try      context.CancelFunc
	lines    []string
	// volumesHeld are the mounted file systems of data disks.
	volumesHeld []mounted
}

// request asks the node to do something that ends its power cycle.
type request struct {
	actor string
	run   func(ctx context.Context, actor string) (guest.Exit, error)
}

// key names the machine across its power cycles, wherever it runs.
func (n *node) key() string {
	if n.m.UUID != "" {
		return n.m.UUID
	}

	return fmt.Sprintf("%s/%d", n.m.Host, n.m.VMID)
}

// object names the node in the trace: by its address, or by its VM while it has none.
func (n *node) object() string {
	if a, ok := n.primaryAddress(); ok {
		return "node/" + a.String()
	}

	return fmt.Sprintf("vm/%d", n.m.VMID)
}

func (n *node) attrs() map[string]string {
	a := map[string]string{
		"vm": fmt.Sprint(n.m.VMID), "hostname": n.hostname(), "version": n.image.Talos, "role": n.role(),
	}
	if cfg := n.config(); cfg != nil && cfg.Cluster() != nil {
		a["cluster"] = cfg.Cluster().Name()
	}

	return a
}

func (n *node) config() config.Provider {
	n.mu.Lock()
	defer n.mu.Unlock()

	return n.cfg
}

func (n *node) setConfig(cfg config.Provider) {
	n.mu.Lock()
	n.cfg = cfg
	n.mu.Unlock()
	n.poke()
}

func (n *node) clusterID() string {
	if cfg := n.config(); cfg != nil && cfg.Cluster() != nil {
		return cfg.Cluster().ID()
	}

	return ""
}

func (n *node) role() string {
	cfg := n.config()
	switch {
	case cfg == nil || cfg.Machine() == nil:
		return ""
	case isControlPlane(cfg):
		return "controlplane"
	}

	return "worker"
}

func (n *node) hostname() string {
	if cfg := n.config(); cfg != nil {
		if h := cfg.NetworkHostnameConfig(); h != nil && h.Hostname() != "" {
			return h.Hostname()
		}
	}
	if n.image.Platform == platformNocloud && n.m.CloudInit != nil && n.m.CloudInit.Hostname != "" {
		return n.m.CloudInit.Hostname
	}

	return "talos-" + shortHash(n.m.UUID)
}

// primaryAddress is the address that others know the node by.
func (n *node) primaryAddress() (netip.Addr, bool) {
	n.mu.Lock()
	vips := slices.Clone(n.vips)
	n.mu.Unlock()

	for _, p := range n.book.wanted() {
		if !slices.Contains(vips, p.Addr()) {
			return p.Addr(), true
		}
	}

	return netip.Addr{}, false
}

// poke wakes whatever waits for a change of this node.
func (n *node) poke() {
	n.mu.Lock()
	defer n.mu.Unlock()

	close(n.poked)
	n.poked = make(chan struct{})
}

func (n *node) pokes() <-chan struct{} {
	n.mu.Lock()
	defer n.mu.Unlock()

	return n.poked
}

func (n *node) hasLeft() bool {
	n.mu.Lock()
	defer n.mu.Unlock()

	return n.left
}

func (n *node) setLeft() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.left = true
}

// stopping ends etcd and the kubelet, ahead of the power cycle's own end.
func (n *node) stopping() {
	n.mu.Lock()
	n.ending = true
	n.mu.Unlock()
	n.poke()
}

func (n *node) isStopping() bool {
	n.mu.Lock()
	defer n.mu.Unlock()

	return n.ending
}

func (n *node) setGroup(g *etcdGroup, id uint64) {
	n.mu.Lock()
	n.etcd, n.etcdID = g, id
	n.mu.Unlock()
	if g != nil {
		g.kube.ensure()
	}
	n.poke()
	n.publishState()
}

func (n *node) group() (*etcdGroup, uint64) {
	n.mu.Lock()
	defer n.mu.Unlock()

	return n.etcd, n.etcdID
}

// ask hands a request to the node's main loop; only the first one counts.
func (n *node) ask(r request) bool {
	select {
	case n.requests <- r:
		return true
	default:
		return false
	}
}

// consoleKept is how many lines Dmesg answers with.
const consoleKept = 500

func (n *node) console(msg string, args ...any) {
	n.nodes.log.Info(msg, append([]any{"node", n.object()}, args...)...)

	n.mu.Lock()
	defer n.mu.Unlock()

	n.lines = append(n.lines, "[talos] "+msg+" "+fmt.Sprint(args...))
	if len(n.lines) > consoleKept {
		n.lines = n.lines[1:]
	}
}

func (n *node) consoleLines() []string {
	n.mu.Lock()
	defer n.mu.Unlock()

	return slices.Clone(n.lines)
}

// controlPlanes are the configured control planes of a Talos cluster on one network.
func (ns *Nodes) controlPlanes(talosID string, net *guest.Net) []*node {
	var out []*node
	for _, n := range ns.all() {
		if n.m.Net == net && n.clusterID() == talosID && isControlPlane(n.config()) {
			out = append(out, n)
		}
	}

	return out
}

// all are the machines that run, in the order of their VM ids.
func (ns *Nodes) all() []*node {
	ns.mu.Lock()
	defer ns.mu.Unlock()

	out := make([]*node, 0, len(ns.nodes))
	for _, n := range ns.nodes {
		out = append(out, n)
	}
	slices.SortFunc(out, func(a, b *node) int {
		if a.m.VMID != b.m.VMID {
			return a.m.VMID - b.m.VMID
		}
		if a.m.Host < b.m.Host {
			return -1
		}

		return 1
	})

	return out
}
