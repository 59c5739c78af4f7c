// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package node

import (
	"context"
	"fmt"
	"net/netip"
	"strings"

	"github.com/siderolabs/talos/pkg/machinery/api/machine"
	"github.com/siderolabs/talos/pkg/machinery/resources/k8s"
	"github.com/siderolabs/talos/pkg/machinery/resources/runtime"
	corev1 "k8s.io/api/core/v1"

	"github.com/talos-proxmox/talos-proxmox/lab/fault"
	"github.com/talos-proxmox/talos-proxmox/lab/talos/events"
	"github.com/talos-proxmox/talos-proxmox/lab/talos/machineconfig"
)

// unmetConditions returns why a node that boots or runs is not ready, in the order and the words of Talos. In all
// other stages a node is ready.
func (n *Node) unmetConditions(stage string) []runtime.UnmetCondition {
	if stage != stageBooting && stage != stageRunning || n.Config() == nil {
		return []runtime.UnmetCondition{}
	}

	unmet := []runtime.UnmetCondition{}
	add := func(name, reason string) {
		if reason != "" {
			unmet = append(unmet, runtime.UnmetCondition{Name: name, Reason: reason})
		}
	}
	if _, skewed := n.holds(fault.ClockSkew); skewed {
		add("time", "time is not synced")
	}
	if len(n.Book.Addresses()) == 0 {
		add("network", "waiting on: address, connectivity")
	}
	add("services", n.servicesProblem())
	add("nodeReady", n.nodeProblem())

	return unmet
}

// servicesProblem returns which services are not healthy, and which are not there that must be.
func (n *Node) servicesProblem() string {
	var problems []string
	running := map[string]bool{}
	for _, s := range n.Services.List() {
		if s.GetState() != events.StateRunning {
			continue
		}
		running[s.GetId()] = true
		if !s.GetHealth().GetUnknown() && !s.GetHealth().GetHealthy() {
			problems = append(problems, s.GetId()+" not healthy")
		}
	}
	required := []string{"apid", "machined", "kubelet"}
	if machineconfig.IsControlPlane(n.Config()) {
		required = append(required, ServiceEtcd, "trustd")
	}
	for _, id := range required {
		if !running[id] {
			problems = append(problems, id+" not running")
		}
	}

	return strings.Join(problems, ", ")
}

func (n *Node) nodeProblem() string {
	switch s := n.nodeStatus(); {
	case s == nil:
		return fmt.Sprintf("node %q status is not available yet", n.Hostname())
	case !s.TypedSpec().NodeReady:
		return fmt.Sprintf("node %q is not ready", n.Hostname())
	}

	return ""
}

// nodeStatus returns the Node as the API server last had it, nil when it was never seen.
func (n *Node) nodeStatus() *k8s.NodeStatus {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.seenNode == nil {
		return nil
	}
	r := k8s.NewNodeStatus(k8s.NamespaceName, n.seenNode.Nodename)
	*r.TypedSpec() = *n.seenNode

	return r
}

// readNodeStatus reads the Node as the API server has it.
func (n *Node) readNodeStatus(ctx context.Context) {
	runner := n.kubernetesOf()
	if runner == nil {
		return
	}
	have := runner.Node(ctx, n.Hostname())
	if have == nil {
		return
	}
	seen := &k8s.NodeStatusSpec{
		Nodename: have.Name, Unschedulable: have.Spec.Unschedulable, Labels: have.Labels, Annotations: have.Annotations,
	}
	for _, cidr := range have.Spec.PodCIDRs {
		if p, err := netip.ParsePrefix(cidr); err == nil {
			seen.PodCIDRs = append(seen.PodCIDRs, p)
		}
	}
	for _, c := range have.Status.Conditions {
		seen.NodeReady = seen.NodeReady || c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.seenNode = seen
}

// appliedThisBoot reports whether a configuration was applied since the node booted: only then it has a persistent
// one beside the one that is in force.
func (n *Node) appliedThisBoot() bool {
	n.mu.Lock()
	defer n.mu.Unlock()

	return n.applied
}

func (n *Node) setApplied() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.applied = true
}

// tellStatus publishes the event of a status that is another than the last.
func (n *Node) tellStatus(stage string, unmet []runtime.UnmetCondition) {
	said := fmt.Sprint(stage, unmet)
	n.mu.Lock()
	same := n.saidStatus == said
	n.saidStatus = said
	n.mu.Unlock()
	if same {
		return
	}
	var conditions []*machine.MachineStatusEvent_MachineStatus_UnmetCondition
	for _, u := range unmet {
		conditions = append(conditions, &machine.MachineStatusEvent_MachineStatus_UnmetCondition{Name: u.Name, Reason: u.Reason})
	}
	name := strings.ToUpper(strings.ReplaceAll(stage, " ", "_"))
	n.Events.MachineStatus(
		machine.MachineStatusEvent_MachineStage(machine.MachineStatusEvent_MachineStage_value[name]), conditions)
}
