// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package node

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"sync"

	"github.com/siderolabs/talos/pkg/machinery/config"

	"github.com/talos-proxmox/talos-proxmox/lab/site/guest"
	"github.com/talos-proxmox/talos-proxmox/lab/talos/controlplane"
	"github.com/talos-proxmox/talos-proxmox/lab/talos/disks"
)

// Options configure [NewNodes].
type Options struct {
	// Kubernetes starts the API servers. Required.
	Kubernetes controlplane.Starter
	// Dir keeps each cluster's Kubernetes data in a folder of its own. Required.
	Dir string
	// HTTPClient fetches a configuration's extra manifests. Nil: a client that dials the site and
	// trusts the system's authorities.
	HTTPClient *http.Client
	// Log takes what a node prints on its console. Nil discards it.
	Log *slog.Logger
}

// Nodes holds all Talos nodes of a site, and the clusters that they form.
type Nodes struct {
	opts Options
	log  *slog.Logger
	api  API

	mu     sync.Mutex
	nodes  map[string]*Node        // by VM
	groups map[string]*EtcdCluster // by etcd cluster
	down   map[string]func(error)
}

// NewNodes returns a site's nodes, whose API is served by api. The function that makes a VM's guest is [Nodes.Guest].
func NewNodes(o Options, api API) *Nodes {
	log := o.Log
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}

	return &Nodes{
		opts: o, log: log, api: api,
		nodes:  map[string]*Node{},
		groups: map[string]*EtcdCluster{},
		down:   map[string]func(error){},
	}
}

// Guest returns Talos inside the given machine.
func (ns *Nodes) Guest(*guest.Machine) guest.Guest { return talosGuest{nodes: ns} }

// Close stops the API servers of all clusters and keeps their data. The guests must have returned.
func (ns *Nodes) Close() error {
	ns.mu.Lock()
	groups := make([]*EtcdCluster, 0, len(ns.groups))
	for _, g := range ns.groups {
		groups = append(groups, g)
	}
	ns.mu.Unlock()

	var errs []error
	for _, g := range groups {
		errs = append(errs, g.close())
	}

	return errors.Join(errs...)
}

// DiskDeleted tells that a disk is gone for good; content is what was on it, as [site.Disk.Load]
// returned it. A cluster whose last disk goes loses its Kubernetes data with it.
func (ns *Nodes) DiskDeleted(content []byte) error {
	in, ok := disks.ParseInstallation(content)
	if !ok || in.Etcd == nil {
		return nil
	}

	return ns.dropReplica(in.Etcd.Cluster, in.Etcd.Member)
}

// API serves the Talos API of nodes.
type API interface {
	// ServeConfigured serves the API of a configured node until ctx ends.
	ServeConfigured(ctx context.Context, n *Node)
	// ServeMaintenance serves the API of a node without a configuration until stop is called, and sends on got
	// the configuration that it was given.
	ServeMaintenance(n *Node, got chan<- config.Provider) (stop func(), err error)
}
