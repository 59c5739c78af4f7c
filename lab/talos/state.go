// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package talos

import (
	"context"
	"strings"

	cosiv1alpha1 "github.com/cosi-project/runtime/api/v1alpha1"
	"github.com/cosi-project/runtime/pkg/resource"
	"github.com/cosi-project/runtime/pkg/resource/meta"
	"github.com/cosi-project/runtime/pkg/safe"
	"github.com/cosi-project/runtime/pkg/state"
	"github.com/cosi-project/runtime/pkg/state/impl/inmem"
	"github.com/cosi-project/runtime/pkg/state/impl/namespaced"
	"github.com/cosi-project/runtime/pkg/state/protobuf/server"
	"github.com/cosi-project/runtime/pkg/state/registry"
	"github.com/siderolabs/talos/pkg/machinery/resources/block"
	"github.com/siderolabs/talos/pkg/machinery/resources/cluster"
	"github.com/siderolabs/talos/pkg/machinery/resources/config"
	"github.com/siderolabs/talos/pkg/machinery/resources/etcd"
	"github.com/siderolabs/talos/pkg/machinery/resources/k8s"
	"github.com/siderolabs/talos/pkg/machinery/resources/network"
	"github.com/siderolabs/talos/pkg/machinery/resources/runtime"
	"github.com/siderolabs/talos/pkg/machinery/resources/v1alpha1"
	"github.com/siderolabs/talos/pkg/machinery/role"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// setUpState creates the node's resources; it is empty but for their definitions.
func (n *node) setUpState() {
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
		n.console("creating resources", "error", err)
	}

	n.mu.Lock()
	n.state = st
	n.mu.Unlock()
	n.publishState()
}

// registerState serves the node's resources, read-only and secrets only to administrators.
func (n *node) registerState(s *grpc.Server) {
	n.mu.Lock()
	st := n.state
	n.mu.Unlock()

	cosiv1alpha1.RegisterStateServer(s, server.NewState(state.WrapCore(state.Filter(st, mayRead(st)))))
}

func mayRead(st state.State) state.FilteringRule {
	return func(ctx context.Context, access state.Access) error {
		if !access.Verb.Readonly() {
			return status.Error(codes.PermissionDenied, "write access is not allowed")
		}

		rd, err := safe.StateGet[*meta.ResourceDefinition](ctx, st, resource.NewMetadata(
			meta.NamespaceName, meta.ResourceDefinitionType, strings.ToLower(access.ResourceType),
			resource.VersionUndefined))
		if state.IsNotFoundError(err) {
			return status.Errorf(codes.PermissionDenied, "resource type %q is not supported", access.ResourceType)
		}
		if err != nil {
			return status.Error(codes.Internal, err.Error())
		}
		if rd.TypedSpec().Sensitivity == meta.Sensitive && !callerRoles(ctx).Includes(role.Admin) {
			return status.Error(codes.PermissionDenied, "not authorized")
		}

		_, err = safe.StateGet[*meta.Namespace](ctx, st, resource.NewMetadata(
			meta.NamespaceName, meta.NamespaceType, access.ResourceNamespace, resource.VersionUndefined))
		if state.IsNotFoundError(err) {
			return status.Errorf(codes.PermissionDenied, "namespace %q is not supported", access.ResourceNamespace)
		}
		if err != nil {
			return status.Error(codes.Internal, err.Error())
		}

		return nil
	}
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
