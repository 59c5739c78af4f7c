// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package stack

import "github.com/talos-proxmox/talos-proxmox/spec"

// File holds what a stack file can say, under the keys talos-proxmox:<key> of its config.
type File struct {
	// Proxmox says how to reach Proxmox VE and which hosts there are.
	Proxmox spec.Proxmox `json:"proxmox,omitempty"`
	// Image is the Talos image that nodes boot when they name no other.
	Image spec.Image `json:"image,omitempty"`
	// Images are further image variants, by name. What one leaves out, it takes from image.
	Images map[string]spec.Image `json:"images,omitempty"`
	// Cluster is what all nodes share.
	Cluster spec.Cluster `json:"cluster,omitempty"`
	// Talos is the operating system's side of the cluster.
	Talos spec.Talos `json:"talos,omitempty"`
	// Kubernetes is the Kubernetes side of the cluster.
	Kubernetes spec.Kubernetes `json:"kubernetes,omitempty"`
	// CNI is the pod network.
	CNI spec.CNI `json:"cni,omitempty"`
	// Manifests is what the cluster gets at day 0 beside its CNI.
	Manifests spec.Manifests `json:"manifests,omitempty"`
	// GitOps hands the cluster to git.
	GitOps spec.GitOps `json:"gitops,omitempty"`
	// Lifecycle says how a living cluster is changed.
	Lifecycle spec.Lifecycle `json:"lifecycle,omitempty"`
	// Output says what is written beside the stack's outputs.
	Output spec.Output `json:"output,omitempty"`
	// Defaults are for nodes that say nothing else.
	Defaults Defaults `json:"defaults,omitempty"`
	// Sizes are size classes, by name; a node names one with size.
	Sizes map[string]spec.Node `json:"sizes,omitempty"`
	// Pools are groups of like nodes with generated names, by name.
	Pools map[string]Pool `json:"pools,omitempty"`
	// Nodes by name. The name of a pool's node overrides what the pool says of that node.
	Nodes map[string]spec.Node `json:"nodes,omitempty"`
}

// Defaults are for nodes that say nothing else.
type Defaults struct {
	// All are for every node.
	All spec.Node `json:"all,omitempty"`
	// ControlPlane are for control planes, over All.
	ControlPlane spec.Node `json:"controlPlane,omitempty"`
	// Worker are for workers, over All.
	Worker spec.Node `json:"worker,omitempty"`
}

// Pool is a group of like nodes: Count of them, or the Members. Besides its own keys it has every key
// of a node, for all its nodes.
type Pool struct {
	// Count is how many nodes the pool has; they are named <prefix>-01, <prefix>-02 and so on.
	Count *int `json:"count,omitempty" min:"0" max:"10000"`
	// Prefix of the nodes' names; the pool's name when unset.
	Prefix *string `json:"prefix,omitempty"`
	// First is the number of the first node.
	First *int `json:"first,omitempty" min:"0" max:"1000000" default:"1"`
	// Skip are numbers that no node has, so that a node can leave from the middle: lower count by
	// one and add its number here.
	Skip []int `json:"skip,omitempty"`
	// Hosts take turns: the node with the first number is on the first host. A member without a
	// number in its name goes where the name's hash points.
	Hosts []string `json:"hosts,omitempty"`
	// VMIDBase gives the pool's nodes the ids base + number, instead of the cluster's.
	VMIDBase *int `json:"vmIdBase,omitempty" min:"100" max:"999000000"`
	// Members are nodes written one by one. One without a name is named <prefix>-<n> after the host
	// part of its first address, so that it keeps its name when others leave.
	Members []Member `json:"members,omitempty"`

	spec.Node `json:",inline"`
}

// Member is a node of a pool that is written out.
type Member struct {
	// Name of the node; derived from its first address when unset.
	Name *string `json:"name,omitempty"`

	spec.Node `json:",inline"`
}
