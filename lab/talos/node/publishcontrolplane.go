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
