// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package talos

import (
	"fmt"

	"github.com/cosi-project/runtime/pkg/resource"
	"github.com/siderolabs/talos/pkg/machinery/resources/etcd"
	"github.com/siderolabs/talos/pkg/machinery/resources/k8s"
	"github.com/siderolabs/talos/pkg/machinery/resources/runtime"
)

// controlPlaneResources are what only control planes have.
func (n *node) controlPlaneResources() []resource.Resource {
	cfg := n.config()
	if !isControlPlane(cfg) {
		return nil
	}

	var out []resource.Resource
	if g, id := n.group(); g != nil {
		m := etcd.NewMember(etcd.NamespaceName, etcd.LocalMemberID)
		m.TypedSpec().MemberID = etcd.FormatMemberID(id)
		out = append(out, m)
	}

	cl := cfg.Cluster()
	api := k8s.NewAPIServerConfig()
	api.TypedSpec().Image = cl.APIServer().Image()
	api.TypedSpec().ControlPlaneEndpoint = cl.Endpoint().String()
	api.TypedSpec().LocalPort = cl.LocalAPIServerPort()
	manager := k8s.NewControllerManagerConfig()
	manager.TypedSpec().Enabled, manager.TypedSpec().Image = true, cl.ControllerManager().Image()
	scheduler := k8s.NewSchedulerConfig()
	scheduler.TypedSpec().Enabled, scheduler.TypedSpec().Image = true, cl.Scheduler().Image()
	out = append(out, api, manager, scheduler)

	if !n.isServing() {
		return out
	}
	for _, name := range []string{"kube-apiserver", "kube-controller-manager", "kube-scheduler"} {
		p := k8s.NewStaticPodStatus(k8s.NamespaceName, fmt.Sprintf("kube-system/%s-%s", name, n.hostname()))
		p.TypedSpec().PodStatus = map[string]any{
			"phase":      "Running",
			"conditions": []any{map[string]any{"type": "Ready", "status": "True"}},
		}
		out = append(out, p)
	}

	return out
}

// peers are the configured nodes of the same cluster, this one among them.
func (ns *Nodes) peers(n *node) []*node {
	id := n.clusterID()
	var out []*node
	for _, p := range ns.all() {
		if p.m.Net == n.m.Net && id != "" && p.clusterID() == id && len(p.book.addresses()) > 0 {
			out = append(out, p)
		}
	}

	return out
}

// machineStage is a stage as MachineStatus has it.
func machineStage(stage string) runtime.MachineStage {
	for s := runtime.MachineStageUnknown; s <= runtime.MachineStageUpgrading; s++ {
		if s.String() == stage {
			return s
		}
	}

	return runtime.MachineStageUnknown
}
