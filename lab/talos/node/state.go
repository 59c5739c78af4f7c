// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package node

import (
	"context"

	"github.com/cosi-project/runtime/pkg/resource"
	"github.com/cosi-project/runtime/pkg/resource/meta"
	"github.com/cosi-project/runtime/pkg/state"
	"github.com/cosi-project/runtime/pkg/state/impl/inmem"
	"github.com/cosi-project/runtime/pkg/state/impl/namespaced"
	"github.com/cosi-project/runtime/pkg/state/registry"
	"github.com/siderolabs/talos/pkg/machinery/resources/block"
	"github.com/siderolabs/talos/pkg/machinery/resources/cluster"
	"github.com/siderolabs/talos/pkg/machinery/resources/config"
	"github.com/siderolabs/talos/pkg/machinery/resources/etcd"
	"github.com/siderolabs/talos/pkg/machinery/resources/k8s"
	"github.com/siderolabs/talos/pkg/machinery/resources/network"
	"github.com/siderolabs/talos/pkg/machinery/resources/runtime"
	"github.com/siderolabs/talos/pkg/machinery/resources/v1alpha1"
)

// setUpState creates the node's resources; it is empty but for their definitions.
func (n *Node) setUpState() {
	ctx := context.Background()
	st := state.WrapCore(namespaced.NewState(inmem.Build))
	namespaces, resources := registry.NewNamespaceRegistry(st), registry.NewResourceRegistry(st)

	err := namespaces.RegisterDefault(ctx)
	if err == nil {
		err = resources.RegisterDefault(ctx)
	}
	for _, name := range []string{
		v1alpha1.NamespaceName, cluster.NamespaceName, config.NamespaceName, etcd.NamespaceName,
		k8s.NamespaceName, k8s.ControlPlaneNamespaceName, network.NamespaceName,
	} {
		if err == nil {
			err = namespaces.Register(ctx, name, name)
		}
	}
	for _, r := range []meta.ResourceWithRD{
		&block.Disk{}, &block.SystemDisk{}, &block.VolumeStatus{},
		&cluster.Identity{}, &cluster.Info{}, &cluster.Member{},
		&config.MachineConfig{}, &config.MachineType{},
		&etcd.Member{},
		&k8s.APIServerConfig{}, &k8s.ControllerManagerConfig{}, &k8s.SchedulerConfig{},
		&k8s.KubeletSpec{}, &k8s.Manifest{}, &k8s.ManifestStatus{}, &k8s.NodeIP{}, &k8s.Nodename{}, &k8s.NodeStatus{},
		&k8s.StaticPod{}, &k8s.StaticPodStatus{},
		&network.AddressStatus{}, &network.HostnameStatus{}, &network.LinkStatus{}, &network.NodeAddress{},
		&network.Status{},
		&runtime.Diagnostic{}, &runtime.ExtensionStatus{}, &runtime.MachineStatus{}, &runtime.MetaKey{},
		&runtime.PlatformMetadata{}, &runtime.SecurityState{}, &runtime.Version{},
		&v1alpha1.Service{},
	} {
		if err == nil {
			err = resources.Register(ctx, r)
		}
	}
	if err != nil {
		n.Console("creating resources", "error", err)
	}

	n.mu.Lock()
	n.state = st
	n.mu.Unlock()
	n.PublishState()
}

// put creates or replaces a resource, and leaves an equal one alone so that no watch is woken.
func put(ctx context.Context, st state.State, r resource.Resource) error {
	old, err := st.Get(ctx, r.Metadata())
	if state.IsNotFoundError(err) {
		return st.Create(ctx, r) //nolint:wrapcheck // in memory, names the resource itself
	}
	if err != nil {
		return err //nolint:wrapcheck // in memory, names the resource itself
	}
	if equalSpec(old, r) {
		return nil
	}
	r.Metadata().SetVersion(old.Metadata().Version())

	return st.Update(ctx, r) //nolint:wrapcheck // in memory, names the resource itself
}
