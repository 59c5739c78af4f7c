// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

// Package node runs Talos inside a virtual machine of the site: it boots, installs, joins etcd and Kubernetes,
// upgrades, resets and goes, and publishes its resources.
package node

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/cosi-project/runtime/pkg/state"
	"github.com/siderolabs/talos/pkg/machinery/config"
	"github.com/siderolabs/talos/pkg/machinery/resources/cluster"
	"github.com/siderolabs/talos/pkg/machinery/resources/k8s"

	"github.com/talos-proxmox/talos-proxmox/lab/site/guest"
	"github.com/talos-proxmox/talos-proxmox/lab/talos/disks"
	"github.com/talos-proxmox/talos-proxmox/lab/talos/events"
	"github.com/talos-proxmox/talos-proxmox/lab/talos/machineconfig"
	"github.com/talos-proxmox/talos-proxmox/lab/talos/nodenet"
	"github.com/talos-proxmox/talos-proxmox/lab/talos/nodepki"
	"github.com/talos-proxmox/talos-proxmox/lab/talos/onask"
)

// Node plays one power cycle of one machine.
type Node struct {
	Nodes *Nodes
	VM    *guest.Machine
	Image guest.Image
	// Disk is nil until Talos is installed.
	Disk     *disks.System
	links    []nodenet.Link
	Book     *nodenet.AddressBook
	Events   *events.Log
	Services *events.Services
	state    state.State // shown to others by Resources
	BootID   string
	Started  time.Time
	requests chan Request
	// off closes when the power cycle is over.
	off    chan struct{}
	bootMu sync.Mutex
	// Installing is held while an installer runs.
	Installing sync.Mutex
	// pubMu is held while resources are published.
	pubMu sync.Mutex
	// servingMu is held while the node begins or ceases to serve; taken before mu.
	servingMu sync.Mutex

	mu sync.Mutex
	// membersAsked reports whether somebody asked for the members of the cluster since the node booted.
	membersAsked bool

	cfg   config.Provider
	stage string

	persisted     config.Provider
	persistedData []byte

	problem  error
	poked    chan struct{}
	left     bool
	ending   bool
	etcd     *EtcdCluster
	etcdID   uint64
	vips     []netip.Addr
	heldVIPs map[netip.Addr]bool
	serving  bool
	kubelet  bool
	// saidStatus is the status that the last event had.
	saidStatus string
	// bootstrapping reports whether etcd was bootstrapped here in this power cycle.
	bootstrapping bool
	// seenNode is the Node as the API server last had it.
	seenNode *k8s.NodeStatusSpec
	// applied reports whether a configuration was applied in this power cycle.
	applied bool
	// partial is a configuration without a machine's part, which maintenance mode uses.
	partial config.Provider
	// registered reports whether the kubelet was up in this power cycle.
	registered bool
	apiStop    func()
	criReady   bool
	upload     []byte
	images     []string
	pki        *nodepki.PKI
	why        error
	served     func(error)
	try        context.CancelFunc
	lines      []string
	// volumesHeld are the mounted file systems of data disks.
	volumesHeld []mounted
}

// key names the machine across its power cycles, wherever it runs.
func (n *Node) key() string {
	if n.VM.UUID != "" {
		return n.VM.UUID
	}

	return fmt.Sprintf("%s/%d", n.VM.Host, n.VM.VMID)
}

// Object names the node in the trace: by its address, or by its VM while it has none.
func (n *Node) Object() string {
	if a, ok := n.primaryAddress(); ok {
		return "node/" + a.String()
	}

	return fmt.Sprintf("vm/%d", n.VM.VMID)
}

func (n *Node) Attrs() map[string]string {
	a := map[string]string{
		"vm": fmt.Sprint(n.VM.VMID), "hostname": n.Hostname(), "version": n.Image.Talos, "role": n.role(),
	}
	if cfg := n.Config(); cfg != nil && cfg.Cluster() != nil {
		a["cluster"] = machineconfig.ClusterName(cfg)
	}

	return a
}

func (n *Node) Config() config.Provider {
	n.mu.Lock()
	defer n.mu.Unlock()

	return n.cfg
}

func (n *Node) setConfig(cfg config.Provider) {
	n.mu.Lock()
	n.cfg = cfg
	n.mu.Unlock()
	n.Poke()
}

func (n *Node) ClusterID() string {
	if cfg := n.Config(); cfg != nil && cfg.Cluster() != nil {
		return machineconfig.ClusterID(cfg)
	}

	return ""
}

func (n *Node) role() string {
	cfg := n.Config()
	switch {
	case cfg == nil || cfg.Machine() == nil:
		return ""
	case machineconfig.IsControlPlane(cfg):
		return "controlplane"
	}

	return "worker"
}

func (n *Node) Hostname() string {
	for _, cfg := range []config.Provider{n.Config(), n.partialConfig()} {
		if cfg == nil {
			continue
		}
		if h := cfg.NetworkHostnameConfig(); h != nil && h.Hostname() != "" {
			return h.Hostname()
		}
	}
	if n.Image.Platform == machineconfig.PlatformNocloud && n.VM.CloudInit != nil && n.VM.CloudInit.Hostname != "" {
		return n.VM.CloudInit.Hostname
	}

	return "talos-" + ShortHash(n.VM.UUID)
}

// primaryAddress returns the address that others know the node by.
func (n *Node) primaryAddress() (netip.Addr, bool) {
	n.mu.Lock()
	vips := slices.Clone(n.vips)
	n.mu.Unlock()

	for _, p := range n.Book.Wanted() {
		if !slices.Contains(vips, p.Addr()) {
			return p.Addr(), true
		}
	}

	return netip.Addr{}, false
}

// Poke wakes whatever waits for a change of this node.
func (n *Node) Poke() {
	n.mu.Lock()
	defer n.mu.Unlock()

	close(n.poked)
	n.poked = make(chan struct{})
}

func (n *Node) pokes() <-chan struct{} {
	n.mu.Lock()
	defer n.mu.Unlock()

	return n.poked
}

func (n *Node) hasLeft() bool {
	n.mu.Lock()
	defer n.mu.Unlock()

	return n.left
}

func (n *Node) setLeft() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.left = true
}

// stopping ends etcd and the kubelet, ahead of the power cycle's own end.
func (n *Node) stopping() {
	n.mu.Lock()
	n.ending = true
	n.mu.Unlock()
	n.Poke()
}

func (n *Node) IsStopping() bool {
	n.mu.Lock()
	defer n.mu.Unlock()

	return n.ending
}

func (n *Node) setGroup(g *EtcdCluster, id uint64) {
	n.mu.Lock()
	n.etcd, n.etcdID = g, id
	n.mu.Unlock()
	if g != nil {
		g.Kube.Ensure()
	}
	n.Poke()
	n.PublishState()
}

func (n *Node) Group() (*EtcdCluster, uint64) {
	n.mu.Lock()
	defer n.mu.Unlock()

	return n.etcd, n.etcdID
}

// consoleKept is how many lines Dmesg answers with.
const consoleKept = 500

func (n *Node) Console(msg string, args ...any) {
	n.Nodes.log.Info(msg, append([]any{"node", n.Object()}, args...)...)

	n.mu.Lock()
	defer n.mu.Unlock()

	n.lines = append(n.lines, "[talos] "+msg+" "+fmt.Sprint(args...))
	if len(n.lines) > consoleKept {
		n.lines = n.lines[1:]
	}
}

func (n *Node) ConsoleLines() []string {
	n.mu.Lock()
	defer n.mu.Unlock()

	return slices.Clone(n.lines)
}

// controlPlanes returns the configured control planes of a Talos cluster on one network.
func (ns *Nodes) controlPlanes(talosID string, net *guest.Net) []*Node {
	var out []*Node
	for _, n := range ns.all() {
		if n.VM.Net == net && n.ClusterID() == talosID && machineconfig.IsControlPlane(n.Config()) {
			out = append(out, n)
		}
	}

	return out
}

// count returns how many nodes run.
func (ns *Nodes) count() int {
	ns.mu.Lock()
	defer ns.mu.Unlock()

	return len(ns.nodes)
}

// all returns the machines that run, in the order of their VM ids.
func (ns *Nodes) all() []*Node {
	ns.mu.Lock()
	defer ns.mu.Unlock()

	out := make([]*Node, 0, len(ns.nodes))
	for _, n := range ns.nodes {
		out = append(out, n)
	}
	slices.SortFunc(out, func(a, b *Node) int {
		if a.VM.VMID != b.VM.VMID {
			return a.VM.VMID - b.VM.VMID
		}
		if a.VM.Host < b.VM.Host {
			return -1
		}

		return 1
	})

	return out
}

// TalosVersion returns the version of Talos that runs.
func (n *Node) TalosVersion() string { return n.Image.Talos }

// WantedAddresses returns the addresses that the node has or is still to get.
func (n *Node) WantedAddresses() []netip.Prefix { return n.Book.Wanted() }

// Network returns the site's network.
func (n *Node) Network() *guest.Net { return n.VM.Net }

// SetUpload keeps a snapshot of etcd that the next bootstrap restores.
func (n *Node) SetUpload(snapshot []byte) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.upload = snapshot
}

// Resources returns the node's resources.
func (n *Node) Resources() state.State {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.state == nil {
		return nil
	}

	return state.WrapCore(onask.State{CoreState: n.state, Type: cluster.MemberType, Publish: n.publishMembers})
}

// partialConfig returns the configuration without a machine's part that maintenance mode was given.
func (n *Node) partialConfig() config.Provider {
	n.mu.Lock()
	defer n.mu.Unlock()

	return n.partial
}

// SetPartial uses a configuration without a machine's part while the node waits for the whole.
func (n *Node) SetPartial(cfg config.Provider) {
	n.mu.Lock()
	n.partial = cfg
	n.mu.Unlock()
	n.PublishState()
}
