// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package cluster

import (
	"fmt"
	"slices"
)

// Member describes one node of a cluster.
type Member struct {
	// Name of the node in the stack.
	Name string
	// Hostname is its name in Talos and Kubernetes.
	Hostname string
	// Address answers the Talos API and is what Kubernetes shows for the node.
	Address string
	// ControlPlane nodes run etcd and the Kubernetes control plane.
	ControlPlane bool
}

// String returns "ctrl-00 (10.0.0.1)".
func (m Member) String() string { return fmt.Sprintf("%s (%s)", m.Name, m.Address) }

// Cluster describes what should run.
type Cluster struct {
	// Name of the cluster.
	Name string
	// Members are all nodes.
	Members []Member
	// SkipKubernetes leaves out whatever needs a pod network: ready nodes, kube-proxy, CoreDNS.
	SkipKubernetes bool
	// KubeProxy says that kube-proxy runs on every node.
	KubeProxy bool
	// CoreDNS says that Talos's CoreDNS runs.
	CoreDNS bool
	// Leaving says that etcd may have members beside the control planes: they leave later in the run.
	Leaving bool
	// Joining says that members which Kubernetes does not know yet may be missing: they join beside this
	// step or after it.
	Joining bool
	// Down are members that nobody expects to answer now.
	Down []Member
}

// ExpectedUp returns the members that are expected to answer: all but those in Down.
func (c Cluster) ExpectedUp(members []Member) []Member {
	return slices.DeleteFunc(slices.Clone(members), func(m Member) bool {
		return slices.ContainsFunc(c.Down, func(d Member) bool { return d.Name == m.Name })
	})
}

// ControlPlanes returns the members that run etcd, in the order of Members.
func (c Cluster) ControlPlanes() []Member {
	return slices.DeleteFunc(slices.Clone(c.Members), func(m Member) bool { return !m.ControlPlane })
}
