// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package spec

import (
	"cmp"
	"net"
	"net/netip"
	"slices"
	"strings"
)

// DefaultImage is the name of the image variant that nodes boot when they name none.
const DefaultImage = "default"

// Config describes a whole cluster: what all nodes share, and every node with all that was said about it.
// [Config.WithDefaults] says what was left out and [Config.Validate] checks it.
type Config struct {
	// Proxmox says how to reach Proxmox VE and which hosts there are.
	Proxmox Proxmox `json:"proxmox,omitempty"`
	// Images are the image variants by name; [DefaultImage] is the one of nodes that name none.
	Images map[string]Image `json:"images,omitempty"`
	// Cluster is what all nodes share.
	Cluster Cluster `json:"cluster,omitempty"`
	// Talos is the operating system's side of the cluster.
	Talos Talos `json:"talos,omitempty"`
	// Kubernetes is the Kubernetes side of the cluster.
	Kubernetes Kubernetes `json:"kubernetes,omitempty"`
	// CNI is the pod network.
	CNI CNI `json:"cni,omitempty"`
	// Manifests is what the cluster gets at day 0 beside its CNI.
	Manifests Manifests `json:"manifests,omitempty"`
	// GitOps hands the cluster to git.
	GitOps GitOps `json:"gitops,omitempty"`
	// Lifecycle says how a living cluster is changed.
	Lifecycle Lifecycle `json:"lifecycle,omitempty"`
	// Output says what is written beside the stack's outputs.
	Output Output `json:"output,omitempty"`
	// Nodes are the cluster's nodes. WithDefaults sorts them: control planes first, each by name.
	Nodes []NamedNode `json:"nodes,omitempty"`
}

// NamedNode holds a node and its name.
type NamedNode struct {
	// Name of the node: of its VM, of its Talos host and of its Kubernetes node.
	Name string `json:"name"`

	Node `json:",inline"`
}

// IsControlPlane reports whether the node runs etcd and the Kubernetes control plane.
func (n NamedNode) IsControlPlane() bool { return n.Role != nil && *n.Role == ControlPlane }

// Device holds a network of a node and its place among the node's network devices.
type Device struct {
	// Name of the network.
	Name string
	// Index of the device: it is net<Index> of the VM.
	Index int

	Network
}

// Devices returns the node's networks in the order of their indexes.
func (n NamedNode) Devices() []Device {
	names := sortedKeys(n.Networks)
	indexes := numberSlots(names, func(name string) *int { return n.Networks[name].Index }, 0)
	devices := make([]Device, 0, len(names))
	for _, name := range names {
		devices = append(devices, Device{Name: name, Index: indexes[name], Network: n.Networks[name]})
	}
	slices.SortStableFunc(devices, func(a, b Device) int { return cmp.Compare(a.Index, b.Index) })

	return devices
}

// PrimaryNetwork returns the first network with a static address, at which the node is reached; without
// one it is the first network.
func (n NamedNode) PrimaryNetwork() (name string, network Network) {
	devices := n.Devices()
	for _, d := range devices {
		if d.Address != nil || d.Address6 != nil {
			return d.Name, d.Network
		}
	}
	if len(devices) == 0 {
		return "", Network{}
	}

	return devices[0].Name, devices[0].Network
}

// Address returns where the node is reached; it is invalid when no network has a static address.
func (n NamedNode) Address() netip.Addr {
	_, network := n.PrimaryNetwork()
	if all := network.Prefixes(); len(all) > 0 {
		return all[0].Addr()
	}

	return netip.Addr{}
}

// Addresses returns all static addresses of the node, in the order of its devices.
func (n NamedNode) Addresses() []netip.Addr {
	var all []netip.Addr
	for _, d := range n.Devices() {
		for _, prefix := range d.Prefixes() {
			all = append(all, prefix.Addr())
		}
	}

	return all
}

// DataDisk holds a data disk with its name and slot.
type DataDisk struct {
	// Name of the disk.
	Name string

	Disk
}

// Interface returns the disk's slot as Proxmox names it: "scsi1".
func (d Disk) Interface() string { return diskInterface(d) }

// DataDisks returns the node's data disks in the order of their slots.
func (n NamedNode) DataDisks() []DataDisk {
	disks := make([]DataDisk, 0, len(n.Disks))
	for _, name := range sortedKeys(n.Disks) {
		disks = append(disks, DataDisk{Name: name, Disk: n.Disks[name]})
	}
	slices.SortStableFunc(disks, func(a, b DataDisk) int {
		return cmp.Or(cmp.Compare(Value(a.Type), Value(b.Type)), cmp.Compare(Value(a.UnitNumber), Value(b.UnitNumber)))
	})

	return disks
}

// Prefixes returns the network's static addresses with their prefix lengths: IPv4, then IPv6. What is no
// address is left out; Validate reports it.
func (n Network) Prefixes() []netip.Prefix {
	var all []netip.Prefix
	for _, v := range []struct{ address, subnet *string }{{n.Address, n.Subnet}, {n.Address6, n.Subnet6}} {
		if v.address == nil {
			continue
		}
		if p, err := ParsePrefix(*v.address, Value(v.subnet)); err == nil {
			all = append(all, p)
		}
	}

	return all
}

// ControlPlanes returns the nodes that run the control plane, by name.
func (c Config) ControlPlanes() []NamedNode {
	return c.withRole(func(n NamedNode) bool { return n.IsControlPlane() })
}

// Workers returns the other nodes, by name.
func (c Config) Workers() []NamedNode {
	return c.withRole(func(n NamedNode) bool { return !n.IsControlPlane() })
}

func (c Config) withRole(wanted func(NamedNode) bool) []NamedNode {
	var nodes []NamedNode
	for _, n := range c.Nodes {
		if wanted(n) {
			nodes = append(nodes, n)
		}
	}
	slices.SortStableFunc(nodes, func(a, b NamedNode) int { return strings.Compare(a.Name, b.Name) })

	return nodes
}

// Node returns the node of that name.
func (c Config) Node(name string) (NamedNode, bool) {
	for _, n := range c.Nodes {
		if n.Name == name {
			return n, true
		}
	}

	return NamedNode{}, false
}

// Endpoint returns the URL of the Kubernetes API: the one given, else the VIP's, else the first control
// plane's; empty when there is none.
func (c Config) Endpoint() string {
	if c.Cluster.Endpoint != nil {
		return *c.Cluster.Endpoint
	}
	host := Value(c.Cluster.VIP)
	if host == "" {
		for _, n := range c.ControlPlanes() {
			if a := n.Address(); a.IsValid() {
				host = a.String()

				break
			}
		}
	}
	if host == "" {
		return ""
	}

	return "https://" + net.JoinHostPort(host, "6443")
}

// Image returns the image variant that the node boots.
func (c Config) Image(n NamedNode) Image { return c.Images[Value(n.Node.Image)] }

// SchedulingOnControlPlanes reports whether control planes run workloads: as told, else exactly when
// there are no workers.
func (c Config) SchedulingOnControlPlanes() bool {
	if told := c.Cluster.AllowSchedulingOnControlPlanes; told != nil {
		return *told
	}

	return len(c.Workers()) == 0
}

// UsesCilium reports whether Cilium is the pod network.
func (c Config) UsesCilium() bool { return Value(c.CNI.Name) == "cilium" }

// KubeProxyEnabled reports whether kube-proxy runs: as told, else unless Cilium replaces it.
func (c Config) KubeProxyEnabled() bool {
	if c.Kubernetes.Proxy != nil && c.Kubernetes.Proxy.Enabled != nil {
		return *c.Kubernetes.Proxy.Enabled
	}
	if !c.UsesCilium() {
		return true
	}

	return c.CNI.Cilium != nil && !Value(c.CNI.Cilium.KubeProxyReplacement)
}
