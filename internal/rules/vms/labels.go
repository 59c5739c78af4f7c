// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package vms

import (
	"strings"

	"github.com/talos-proxmox/talos-proxmox/internal/check"
	"github.com/talos-proxmox/talos-proxmox/internal/rules/scope"
	"github.com/talos-proxmox/talos-proxmox/spec"
)

// The labels of every node that Kubernetes or a setting gives.
const (
	zoneLabel     = "topology.kubernetes.io/zone"
	hostnameLabel = "kubernetes.io/hostname"
	roleLabel     = "node-role.kubernetes.io/"
	controlPlane  = "node-role.kubernetes.io/control-plane"
)

// labels checks labels and taints against what else says the same, and against what Kubernetes lets a node say of itself.
func (r *rules) labels(at string, n spec.NamedNode) {
	r.nodeLabels(at, n)
	r.nodeTaints(at, n)
}

// nodeLabels checks a node's labels.
func (r *rules) nodeLabels(at string, n spec.NamedNode) {
	for _, key := range scope.SortedKeys(n.Labels) {
		path, value := check.Key(at+".labels", key), n.Labels[key]
		switch {
		case r.otherwiseGiven(path, key, value, n):
		case n.IsControlPlane() || !scope.ReservedLabel(key):
		case strings.HasPrefix(key, roleLabel):
			r.Addf(path, "is a label that Kubernetes lets no worker give itself: use a label of your own domain, or let a controller set it")
		default:
			r.Addf(path, "is a label that Kubernetes keeps from workers: use a label of your own domain")
		}
	}
}

// otherwiseGiven records a label that Talos or the kubelet sets to another value, and reports whether it is one.
func (r *rules) otherwiseGiven(path, key, value string, n spec.NamedNode) bool {
	switch {
	case key == controlPlane && n.IsControlPlane() && value != "":
		r.Addf(path, "is %q, and Talos gives control planes the label without a value: remove it", value)
	case key == zoneLabel && n.Zone != nil && value != *n.Zone:
		r.Addf(path, "is %s, and the node's zone is %s: remove the label", value, *n.Zone)
	case key == hostnameLabel && value != *n.Hostname:
		r.Addf(path, "is %s, and the node's host name is %s: remove the label", value, *n.Hostname)
	case key == "kubernetes.io/os" && value != "linux", key == "kubernetes.io/arch" && value != *r.Config.Image(n).Arch:
		r.Addf(path, "is %s, and the kubelet gives it another value: remove the label", value)
	default:
		return false
	}

	return true
}

// nodeTaints checks a node's taints.
func (r *rules) nodeTaints(at string, n spec.NamedNode) {
	if _, ok := n.Taints[controlPlane]; ok && !n.IsControlPlane() {
		r.Addf(check.Key(at+".taints", controlPlane), "is the taint of control planes, and the node is a worker: remove it")
	}
	open := spec.Value(r.Said.Cluster.AllowSchedulingOnControlPlanes)
	if open && n.IsControlPlane() && strings.HasSuffix(n.Taints[controlPlane], ":NoSchedule") {
		r.Addf(check.Key(at+".taints", controlPlane),
			"keeps workloads off, and cluster.allowSchedulingOnControlPlanes is true: remove one of them")
	}
	for _, key := range scope.SortedKeys(n.Taints) {
		if ofKubernetes(key) {
			r.Addf(check.Key(at+".taints", key), "is a taint that Kubernetes itself gives and takes: remove it")
		}
	}
}

// ofKubernetes reports whether a taint is one that Kubernetes itself gives and takes.
func ofKubernetes(taint string) bool {
	return strings.HasPrefix(taint, "node.kubernetes.io/") || strings.HasPrefix(taint, "node.cloudprovider.kubernetes.io/")
}

// closedBy returns the path of what keeps workloads off a node, and reports whether that is told as a problem of its own.
func closedBy(n spec.NamedNode) (path string, told bool) {
	for _, key := range scope.SortedKeys(n.Taints) {
		_, effect, _ := strings.Cut(n.Taints[key], ":")
		if !scope.IsQualified(key) || effect != "NoSchedule" && effect != "NoExecute" {
			continue
		}
		path = check.Key(scope.NodePath(n)+".taints", key)
		if ofKubernetes(key) || key == controlPlane && !n.IsControlPlane() {
			return path, true
		}
	}
	if n.GPU != nil && n.GPU.Vendor != nil && *n.GPU.Taint {
		path = scope.NodePath(n) + ".gpu.taint"
	}

	return path, false
}

// openNodes checks that some node takes workloads: else not even the cluster's DNS runs.
func (r *rules) openNodes() {
	closed := ""
	for _, n := range r.Config.Nodes {
		if n.IsControlPlane() && !r.Config.SchedulingOnControlPlanes() {
			continue
		}
		shut, told := closedBy(n)
		if shut == "" || told {
			return
		}
		if closed == "" {
			closed = shut
		}
	}
	remedy := "leave one node without such a taint"
	if strings.HasSuffix(closed, ".gpu.taint") {
		remedy = "set it to false on one node"
	}
	if closed != "" {
		r.Addf(closed, "closes the last node that takes workloads, so that not even the cluster's DNS runs: %s", remedy)
	}
}
