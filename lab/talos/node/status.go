// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package node

import (
	"net/netip"
	"slices"
	"strings"

	"github.com/siderolabs/talos/pkg/machinery/config"

	"github.com/talos-proxmox/talos-proxmox/lab/talos/etcd"
	"github.com/talos-proxmox/talos-proxmox/lab/talos/machineconfig"
)

// Status holds what the nodes and clusters of a site are doing.
type Status struct {
	Nodes    []NodeStatus    `json:"nodes"`
	Clusters []ClusterStatus `json:"clusters"`
}

// NodeStatus describes one running machine.
type NodeStatus struct {
	Host     string `json:"host"`
	VMID     int    `json:"vmId"`
	Hostname string `json:"hostname"`
	// Addresses are those that are up.
	Addresses []netip.Addr `json:"addresses,omitempty"`
	// Stage is Talos's own ("maintenance", "running", …) or "halted".
	Stage string `json:"stage"`
	// Problem says what keeps the node from working, "" when nothing does.
	Problem   string `json:"problem,omitempty"`
	Version   string `json:"version"`
	Schematic string `json:"schematic"`
	// Role is "controlplane", "worker", or "" without a configuration.
	Role    string `json:"role,omitempty"`
	Cluster string `json:"cluster,omitempty"`
	// EtcdMember is the member's id in hexadecimal, "" when etcd does not run here.
	EtcdMember string `json:"etcdMember,omitempty"`
	// Serving reports whether the node does its part in the cluster.
	Serving bool `json:"serving"`
}

// ClusterStatus describes one cluster that was bootstrapped.
type ClusterStatus struct {
	Name     string `json:"name"`
	ID       string `json:"id"`
	Endpoint string `json:"endpoint,omitempty"`
	// Members are the names of the etcd members.
	Members []string `json:"members"`
	// Healthy reports whether etcd has quorum and the API server runs.
	Healthy bool `json:"healthy"`
	// Kubernetes is the version that runs, "" when none does.
	Kubernetes string `json:"kubernetes,omitempty"`
	Problem    string `json:"problem,omitempty"`
}

// Status describes all machines that run and all clusters.
func (ns *Nodes) Status() Status {
	var s Status
	for _, n := range ns.all() {
		s.Nodes = append(s.Nodes, n.status())
	}

	ns.mu.Lock()
	groups := make([]*EtcdCluster, 0, len(ns.groups))
	for _, g := range ns.groups {
		groups = append(groups, g)
	}
	ns.mu.Unlock()
	for _, g := range groups {
		s.Clusters = append(s.Clusters, g.status())
	}
	slices.SortFunc(s.Clusters, func(a, b ClusterStatus) int {
		return strings.Compare(a.Name+a.ID, b.Name+b.ID)
	})

	return s
}

func (n *Node) status() NodeStatus {
	stage, problem := n.stageNow()
	s := NodeStatus{
		Host: n.VM.Host, VMID: n.VM.VMID, Hostname: n.Hostname(), Stage: stage,
		Version: n.Image.Talos, Schematic: n.Image.Schematic, Role: n.role(), Serving: n.isServing(),
	}
	for _, p := range n.Book.Addresses() {
		s.Addresses = append(s.Addresses, p.Addr())
	}
	if problem == nil {
		problem = n.Book.Problem()
	}
	if problem == nil {
		n.mu.Lock()
		problem = n.why
		n.mu.Unlock()
	}
	if problem == nil && len(n.Book.Wanted()) == 0 && stage != stageBooting {
		s.Problem = "no address: the image reads none and there is no DHCP"
	}
	if problem != nil {
		s.Problem = problem.Error()
	}
	if cfg := n.Config(); cfg != nil && cfg.Cluster() != nil {
		s.Cluster = machineconfig.ClusterName(cfg)
	}
	if g, id := n.Group(); g != nil {
		s.EtcdMember = etcd.FormatID(id)
	}

	return s
}

func (g *EtcdCluster) status() ClusterStatus {
	v := g.View()
	s := ClusterStatus{ID: g.TalosID()}
	for _, m := range v.Members {
		s.Members = append(s.Members, m.Name)
	}
	var cfg config.Provider
	if n := g.AnyRunning(); n != nil {
		cfg = n.Config()
	}
	if cfg != nil && cfg.Cluster() != nil {
		s.Name, s.Endpoint = machineconfig.ClusterName(cfg), machineconfig.Endpoint(cfg).String()
	} else {
		s.Name = g.Kube.Name()
	}

	version, err := g.Kube.Status()
	s.Kubernetes, s.Healthy = version, v.Quorum && version != ""
	switch {
	case !v.Quorum:
		s.Problem = "etcd has no quorum"
	case err != nil:
		s.Problem = err.Error()
	}

	return s
}
