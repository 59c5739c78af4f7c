// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package node

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/talos-proxmox/talos-proxmox/lab/site/guest"
	"github.com/talos-proxmox/talos-proxmox/lab/talos/controlplane"
	"github.com/talos-proxmox/talos-proxmox/lab/talos/etcd"
)

// openGroup returns the etcd cluster of a replica, and starts to look after it.
func (ns *Nodes) openGroup(r *etcd.Replica, net *guest.Net, clock guest.Clock, trace *guest.Trace) *EtcdCluster {
	ns.mu.Lock()
	defer ns.mu.Unlock()

	if g := ns.groups[r.Cluster]; g != nil {
		return g
	}

	g := &EtcdCluster{Group: etcd.NewGroup(r), net: net}
	g.Kube = controlplane.NewRunner(g, controlplane.Options{Kubernetes: ns.opts.Kubernetes, HTTPClient: ns.opts.HTTPClient},
		ns.log, ns.groupDir(r.Cluster), clock, trace)
	ns.groups[r.Cluster] = g

	return g
}

// GroupsOf returns the etcd clusters of one Talos cluster that the node's network reaches.
func (ns *Nodes) GroupsOf(talosID string, net *guest.Net) []*EtcdCluster {
	ns.mu.Lock()
	defer ns.mu.Unlock()

	var out []*EtcdCluster
	for _, g := range ns.groups {
		if g.TalosID() == talosID && g.net == net {
			out = append(out, g)
		}
	}
	slices.SortFunc(out, func(a, b *EtcdCluster) int {
		switch {
		case a.UID < b.UID:
			return -1
		case a.UID > b.UID:
			return 1
		}

		return 0
	})

	return out
}

func (ns *Nodes) groupDir(uid string) string { return filepath.Join(ns.opts.Dir, uid) }

func (ns *Nodes) holdersFile(uid string) string {
	return filepath.Join(ns.groupDir(uid), "replicas.json")
}

func (ns *Nodes) readHolders(uid string) ([]uint64, error) {
	content, err := os.ReadFile(ns.holdersFile(uid))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading the replicas of etcd cluster %s: %w", uid, err)
	}

	var ids []uint64
	if err := json.Unmarshal(content, &ids); err != nil {
		return nil, fmt.Errorf("reading the replicas of etcd cluster %s: %w", uid, err)
	}

	return ids, nil
}

// addReplica remembers that a disk holds the cluster's data.
func (ns *Nodes) addReplica(uid string, member uint64) error {
	ns.mu.Lock()
	defer ns.mu.Unlock()

	ids, err := ns.readHolders(uid)
	if err != nil || slices.Contains(ids, member) {
		return err
	}

	return ns.writeHolders(uid, append(ids, member))
}

// dropReplica remembers that a disk no longer holds the cluster's data; with the last one the data
// are gone.
func (ns *Nodes) dropReplica(uid string, member uint64) error {
	ns.mu.Lock()
	ids, err := ns.readHolders(uid)
	if err != nil {
		ns.mu.Unlock()

		return err
	}

	ids = slices.DeleteFunc(ids, func(id uint64) bool { return id == member })
	if len(ids) > 0 {
		defer ns.mu.Unlock()

		return ns.writeHolders(uid, ids)
	}
	g := ns.groups[uid]
	delete(ns.groups, uid)
	ns.mu.Unlock()

	if g != nil {
		if err := g.Kube.Destroy(); err != nil {
			return err
		}
	}
	if err := os.RemoveAll(ns.groupDir(uid)); err != nil {
		return fmt.Errorf("removing the data of etcd cluster %s: %w", uid, err)
	}

	return nil
}

func (ns *Nodes) writeHolders(uid string, ids []uint64) error {
	content, err := json.Marshal(ids)
	if err == nil {
		err = os.MkdirAll(ns.groupDir(uid), 0o700)
	}
	if err == nil {
		err = os.WriteFile(ns.holdersFile(uid), content, 0o600)
	}
	if err != nil {
		return fmt.Errorf("writing the replicas of etcd cluster %s: %w", uid, err)
	}

	return nil
}

func (g *EtcdCluster) close() error { return g.Kube.Close() }

func (g *EtcdCluster) AnyRunning() *Node {
	if nodes := g.running(); len(nodes) > 0 {
		return nodes[0]
	}

	return nil
}

// EtcdCluster runs an etcd cluster of the site, and the Kubernetes whose data it holds.
type EtcdCluster struct {
	*etcd.Group

	net  *guest.Net
	Kube *controlplane.Runner
}

// running returns the nodes whose member runs and votes, in the members' order.
func (g *EtcdCluster) running() []*Node {
	var out []*Node
	for _, h := range g.RunningHosts() {
		if n, ok := h.(*Node); ok {
			out = append(out, n)
		}
	}

	return out
}

// RunningNodes returns the control planes that serve the cluster's Kubernetes.
func (g *EtcdCluster) RunningNodes() []controlplane.Node {
	var out []controlplane.Node
	for _, n := range g.running() {
		out = append(out, n)
	}

	return out
}

// ConfiguredNodes returns all configured control planes of the cluster, those that are still to join among them.
func (g *EtcdCluster) ConfiguredNodes() []controlplane.Node {
	nodes := g.running()
	if len(nodes) == 0 {
		return nil
	}
	var out []controlplane.Node
	for _, n := range nodes[0].Nodes.controlPlanes(g.TalosID(), g.net) {
		out = append(out, n)
	}

	return out
}
