// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package node

import (
	"context"
	"net/netip"
	"slices"

	"github.com/cosi-project/runtime/pkg/resource"
	"github.com/cosi-project/runtime/pkg/state"
	"github.com/siderolabs/talos/pkg/machinery/config/machine"
	"github.com/siderolabs/talos/pkg/machinery/resources/cluster"

	"github.com/talos-proxmox/talos-proxmox/lab/talos/machineconfig"
)

// asked has the members of the cluster published once somebody asks for them. Each node has a resource for each of them:
// kept by all of a thousand nodes they would be a million.
type asked struct {
	state.CoreState

	publish func()
}

func (a asked) about(kind resource.Type) {
	if kind == cluster.MemberType {
		a.publish()
	}
}

// Get implements [state.CoreState].
func (a asked) Get(ctx context.Context, p resource.Pointer, opts ...state.GetOption) (resource.Resource, error) {
	a.about(p.Type())

	return a.CoreState.Get(ctx, p, opts...)
}

// List implements [state.CoreState].
func (a asked) List(ctx context.Context, k resource.Kind, opts ...state.ListOption) (resource.List, error) {
	a.about(k.Type())

	return a.CoreState.List(ctx, k, opts...)
}

// Watch implements [state.CoreState].
func (a asked) Watch(ctx context.Context, p resource.Pointer, to chan<- state.Event, opts ...state.WatchOption) error {
	a.about(p.Type())

	return a.CoreState.Watch(ctx, p, to, opts...)
}

// WatchKind implements [state.CoreState].
func (a asked) WatchKind(ctx context.Context, k resource.Kind, to chan<- state.Event, opts ...state.WatchKindOption) error {
	a.about(k.Type())

	return a.CoreState.WatchKind(ctx, k, to, opts...)
}

// WatchKindAggregated implements [state.CoreState].
func (a asked) WatchKindAggregated(
	ctx context.Context, k resource.Kind, to chan<- []state.Event, opts ...state.WatchKindOption,
) error {
	a.about(k.Type())

	return a.CoreState.WatchKindAggregated(ctx, k, to, opts...)
}

// publishMembers publishes the members of the cluster, now and from now on in this boot.
func (n *Node) publishMembers() {
	n.mu.Lock()
	already := n.membersAsked
	n.membersAsked = true
	n.mu.Unlock()
	if !already {
		n.PublishState()
	}
}

// memberResources returns the members of the node's cluster; none while nobody has asked for them.
func (n *Node) memberResources() []resource.Resource {
	n.mu.Lock()
	wanted := n.membersAsked
	n.mu.Unlock()
	if !wanted {
		return nil
	}
	var out []resource.Resource
	for _, peer := range n.Nodes.peers(n) {
		m := cluster.NewMember(cluster.NamespaceName, peer.Hostname())
		s := m.TypedSpec()
		s.NodeID = peer.Disk.Read().NodeID
		s.Hostname, s.OperatingSystem = peer.Hostname(), "Talos ("+peer.Image.Talos+")"
		s.MachineType = machine.TypeWorker
		if machineconfig.IsControlPlane(peer.Config()) {
			s.MachineType = machine.TypeControlPlane
			s.ControlPlane = &cluster.ControlPlane{APIServerPort: 6443}
		}
		for _, p := range peer.Book.Addresses() {
			s.Addresses = append(s.Addresses, p.Addr())
		}
		slices.SortFunc(s.Addresses, netip.Addr.Compare)
		out = append(out, m)
	}

	return out
}
