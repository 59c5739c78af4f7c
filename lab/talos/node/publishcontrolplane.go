// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package node

import (
	"fmt"

	"github.com/cosi-project/runtime/pkg/resource"
	"github.com/siderolabs/talos/pkg/machinery/resources/etcd"
	"github.com/siderolabs/talos/pkg/machinery/resources/k8s"
	"github.com/siderolabs/talos/pkg/machinery/resources/runtime"

	"github.com/talos-proxmox/talos-proxmox/lab/talos/machineconfig"
)

// controlPlaneResources returns what only control planes have.
func (n *Node) controlPlaneResources() []resource.Resource {
	cfg := n.Config()
	if !machineconfig.IsControlPlane(cfg) {
		return nil
	}

	var out []resource.Resource
	if g, id := n.Group(); g != nil {
		m := etcd.NewMember(etcd.NamespaceName, etcd.LocalMemberID)
		m.TypedSpec().MemberID = etcd.FormatMemberID(id)
		out = append(out, m)
	}

	api := k8s.NewAPIServerConfig(k8s.APIServerConfigID)
	api.TypedSpec().Image = cfg.K8sAPIServerConfig().Image()
	api.TypedSpec().ControlPlaneEndpoint = machineconfig.Endpoint(cfg).String()
	api.TypedSpec().LocalPort = cfg.K8sAPIServerConfig().APIPort()
	manager := k8s.NewControllerManagerConfig(k8s.ControllerManagerConfigID)
	manager.TypedSpec().Enabled, manager.TypedSpec().Image = true, cfg.K8sControllerManagerConfig().Image()
	scheduler := k8s.NewSchedulerConfig(k8s.SchedulerConfigID)
	scheduler.TypedSpec().Enabled, scheduler.TypedSpec().Image = true, cfg.K8sSchedulerConfig().Image()
	out = append(out, api, manager, scheduler)

	if !n.isServing() {
		return out
	}
	for _, name := range []string{"kube-apiserver", "kube-controller-manager", "kube-scheduler"} {
		p := k8s.NewStaticPodStatus(k8s.NamespaceName, fmt.Sprintf("kube-system/%s-%s", name, n.Hostname()))
		p.TypedSpec().PodStatus = map[string]any{
			"phase":      "Running",
			"conditions": []any{map[string]any{"type": "Ready", "status": "True"}},
		}
		out = append(out, p)
	}

	return out
}

// peers returns the configured nodes of the same cluster, this one among them.
func (ns *Nodes) peers(n *Node) []*Node {
	id := n.ClusterID()
	var out []*Node
	for _, p := range ns.all() {
		if p.VM.Net == n.VM.Net && id != "" && p.ClusterID() == id && len(p.Book.Addresses()) > 0 {
			out = append(out, p)
		}
	}

	return out
}

// machineStage returns a stage as MachineStatus has it.
func machineStage(stage string) runtime.MachineStage {
	for s := runtime.MachineStageUnknown; s <= runtime.MachineStageUpgrading; s++ {
		if s.String() == stage {
			return s
		}
	}

	return runtime.MachineStageUnknown
}
