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
	"github.com/siderolabs/talos/pkg/machinery/resources/cri"
	"github.com/siderolabs/talos/pkg/machinery/resources/etcd"
	"github.com/siderolabs/talos/pkg/machinery/resources/files"
	"github.com/siderolabs/talos/pkg/machinery/resources/hardware"
	"github.com/siderolabs/talos/pkg/machinery/resources/k8s"
	"github.com/siderolabs/talos/pkg/machinery/resources/kubespan"
	"github.com/siderolabs/talos/pkg/machinery/resources/network"
	"github.com/siderolabs/talos/pkg/machinery/resources/perf"
	"github.com/siderolabs/talos/pkg/machinery/resources/runtime"
	"github.com/siderolabs/talos/pkg/machinery/resources/secrets"
	"github.com/siderolabs/talos/pkg/machinery/resources/time"
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
	for name, description := range descriptions() {
		if err == nil {
			err = namespaces.Register(ctx, name, description)
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
		&runtime.BootedEntry{}, &secrets.API{}, &secrets.CertSAN{}, &secrets.OSRoot{}, &time.Status{}, &v1alpha1.Service{},
	} {
		if err == nil {
			err = resources.Register(ctx, r)
		}
	}
	if err != nil {
		n.Console("creating resources", "error", err)
	}

	n.mu.Lock()
	n.state, n.membersAsked = st, false
	n.mu.Unlock()
	n.PublishState()
}

// descriptions returns the namespaces that Talos has.
func descriptions() map[resource.Namespace]string {
	return map[resource.Namespace]string{
		cluster.NamespaceName:         "Cluster configuration and discovery resources.",
		cluster.RawNamespaceName:      "Cluster unmerged raw resources.",
		config.NamespaceName:          "Talos node configuration.",
		k8s.ControlPlaneNamespaceName: "Kubernetes control plane resources.",
		cri.NamespaceName:             "CRI Seccomp resources.",
		etcd.NamespaceName:            "etcd resources.",
		files.NamespaceName:           "Files and file-like resources.",
		hardware.NamespaceName:        "Hardware resources.",
		k8s.NamespaceName:             "Kubernetes all node types resources.",
		kubespan.NamespaceName:        "KubeSpan resources.",
		network.NamespaceName:         "Networking resources.",
		network.ConfigNamespaceName:   "Networking configuration resources.",
		perf.NamespaceName:            "Stats resources.",
		v1alpha1.NamespaceName:        "Talos v1alpha1 subsystems glue resources.",
		secrets.NamespaceName:         "Resources with secret material.",
	}
}

// owners returns the controller that publishes each kind of resource, or one of a kind by its ID; a configuration has none.
func owners() map[resource.Type]string {
	return map[resource.Type]string{
		block.DiskType: "block.DisksController", block.SystemDiskType: "block.SystemDiskController",
		block.VolumeStatusType: "block.VolumeManagerController", cluster.IdentityType: "cluster.NodeIdentityController",
		cluster.InfoType: "cluster.InfoController", cluster.MemberType: "cluster.MemberController",
		config.MachineTypeType: "config.MachineTypeController", etcd.MemberType: "etcd.MemberController",
		k8s.ManifestType: "k8s.ManifestController", k8s.KubeletSpecType: "k8s.KubeletSpecController", k8s.NodeIPType: "k8s.NodeIPController",
		k8s.NodenameType: "k8s.NodenameController", k8s.NodeStatusType: "k8s.NodeStatusController",
		k8s.StaticPodType: "k8s.ControlPlaneStaticPodController", k8s.StaticPodStatusType: "k8s.KubeletStaticPodController",
		network.AddressStatusType: "network.AddressStatusController", network.HostnameStatusType: "network.HostnameSpecController",
		network.LinkStatusType: "network.LinkStatusController", network.NodeAddressType: "network.NodeAddressController",
		network.StatusType: "network.StatusController", runtime.DiagnosticType: "runtime.DiagnosticsController",
		runtime.ExtensionStatusType:  "runtime.ExtensionStatusController",
		runtime.MachineStatusType:    "runtime.MachineStatusController",
		runtime.PlatformMetadataType: "network.PlatformConfigApplyController",
		runtime.SecurityStateType:    "runtime.SecurityStateController", runtime.VersionType: "runtime.VersionController",
		secrets.OSRootType: "secrets.RootOSController", secrets.CertSANType + "/" + secrets.CertSANAPIID: "secrets.APICertSANsController",
		secrets.CertSANType + "/" + secrets.CertSANKubernetesID:  "secrets.KubernetesCertSANsController",
		secrets.CertSANType + "/" + secrets.CertSANMaintenanceID: "secrets.MaintenanceCertSANsController",
		time.StatusType: "time.SyncController", v1alpha1.ServiceType: "v1alpha1.ServiceController",
	}
}

// put creates or replaces a resource, and leaves an equal one alone so that no watch is woken.
func put(ctx context.Context, st state.State, r resource.Resource) error {
	old, err := st.Get(ctx, r.Metadata())
	if err == nil && equalSpec(old, r) {
		return nil
	}
	known := owners()
	owner := known[r.Metadata().Type()]
	if one, ok := known[r.Metadata().Type()+"/"+r.Metadata().ID()]; ok {
		owner = one
	}
	if state.IsNotFoundError(err) {
		return st.Create(ctx, r, state.WithCreateOwner(owner)) // in memory, names the resource itself
	}
	if err != nil {
		return err // in memory, names the resource itself
	}
	r.Metadata().SetVersion(old.Metadata().Version())
	if err := r.Metadata().SetOwner(owner); err != nil {
		return err // in memory, names the resource itself
	}

	return st.Update(ctx, r, state.WithUpdateOwner(owner)) // in memory, names the resource itself
}
