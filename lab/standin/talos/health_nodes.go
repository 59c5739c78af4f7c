// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package talos

import (
	"context"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/cosi-project/runtime/pkg/safe"
	machineapi "github.com/siderolabs/talos/pkg/machinery/api/machine"
	"github.com/siderolabs/talos/pkg/machinery/client"
	"github.com/siderolabs/talos/pkg/machinery/resources/runtime"
)

// Memory below which a node counts as too small, in KiB.
const (
	minControlPlaneKiB = 1698 << 10
	minWorkerKiB       = 874 << 10
)

func nodeChecks() []check {
	return []check{
		{what: "etcd to be healthy", holds: serviceHealthy("etcd", (*checkup).planes)},
		{what: "etcd members to be consistent across nodes", holds: etcdConsistent},
		{what: "etcd members to be control plane nodes", holds: etcdMembersKnown},
		{what: "apid to be ready", holds: answersVersion},
		{what: "all nodes memory sizes", holds: memorySizes},
		{what: "no diagnostics", timeout: time.Minute, holds: noDiagnostics},
		{what: "kubelet to be healthy", holds: serviceHealthy("kubelet", (*checkup).planes)},
		{what: "all nodes to finish boot sequence", holds: bootFinished},
	}
}

func (h *checkup) planes() []string { return h.controlPlane }

func serviceHealthy(name string, nodes func(*checkup) []string) func(context.Context, *checkup) error {
	return func(ctx context.Context, h *checkup) error {
		on := nodes(h)
		r, err := h.client.ServiceList(client.WithNodes(ctx, on...))
		if err != nil {
			return err
		}

		seen := 0
		for _, m := range r.GetMessages() {
			for _, s := range m.GetServices() {
				if s.GetId() != name {
					continue
				}
				seen++
				if s.GetState() != "Running" {
					return fmt.Errorf("%s: service %q not in expected state %q: current state [%s]",
						m.GetMetadata().GetHostname(), name, "Running", s.GetState())
				}
				if h := s.GetHealth(); !h.GetUnknown() && !h.GetHealthy() {
					return fmt.Errorf("%s: service is not healthy: %s", m.GetMetadata().GetHostname(), name)
				}
			}
		}
		if seen != len(on) {
			return fmt.Errorf("service %q: expected %d instances, got %d", name, len(on), seen)
		}

		return nil
	}
}

func etcdConsistent(ctx context.Context, h *checkup) error {
	r, err := h.client.EtcdMemberList(client.WithNodes(ctx, h.controlPlane...), &machineapi.EtcdMemberListRequest{})
	if err != nil {
		return err
	}

	var first []string
	for _, m := range r.GetMessages() {
		var names []string
		for _, e := range m.GetMembers() {
			names = append(names, e.GetHostname())
		}
		slices.Sort(names)

		if first != nil && !slices.Equal(first, names) {
			return fmt.Errorf("%s: etcd member list differs: %s, elsewhere %s", m.GetMetadata().GetHostname(),
				strings.Join(names, " "), strings.Join(first, " "))
		}
		first = names
	}
	if len(first) != len(h.controlPlane) {
		return fmt.Errorf("expected %d etcd members, got %d", len(h.controlPlane), len(first))
	}

	return nil
}

func etcdMembersKnown(ctx context.Context, h *checkup) error {
	r, err := h.client.EtcdMemberList(ctx, &machineapi.EtcdMemberListRequest{})
	if err != nil {
		return err
	}

	for _, m := range r.GetMessages() {
		for _, e := range m.GetMembers() {
			known := slices.ContainsFunc(e.GetPeerUrls(), func(peer string) bool {
				u, err := url.Parse(peer)
				return err == nil && slices.Contains(h.controlPlane, u.Hostname())
			})
			if !known {
				return fmt.Errorf("etcd member %q is not a control plane node", e.GetHostname())
			}
		}
	}

	return nil
}

func answersVersion(ctx context.Context, h *checkup) error {
	r, err := h.client.Version(client.WithNodes(ctx, h.all()...))
	if err != nil {
		return err
	}
	if got := len(r.GetMessages()); got != len(h.all()) {
		return fmt.Errorf("expected %d nodes to answer, got %d", len(h.all()), got)
	}

	return nil
}

func memorySizes(ctx context.Context, h *checkup) error {
	r, err := h.client.Memory(client.WithNodes(ctx, h.all()...))
	if err != nil {
		return err
	}

	for _, m := range r.GetMessages() {
		node, least := m.GetMetadata().GetHostname(), uint64(minWorkerKiB)
		if slices.Contains(h.controlPlane, node) {
			least = minControlPlaneKiB
		}
		if have := m.GetMeminfo().GetMemtotal(); have < least {
			return fmt.Errorf("node %s does not meet memory requirements: expected at least %d MiB, actual %d MiB",
				node, least>>10, have>>10)
		}
	}

	return nil
}

func noDiagnostics(ctx context.Context, h *checkup) error {
	for _, n := range h.all() {
		list, err := safe.StateListAll[*runtime.Diagnostic](client.WithNode(ctx, n), h.client.COSI)
		if err != nil {
			return skipDenied(err)
		}
		for d := range list.All() {
			return fmt.Errorf("active diagnostics: %s: %s: %s", n, d.Metadata().ID(), d.TypedSpec().Message)
		}
	}

	return nil
}

func bootFinished(ctx context.Context, h *checkup) error {
	for _, n := range h.all() {
		s, err := safe.StateGetByID[*runtime.MachineStatus](client.WithNode(ctx, n), h.client.COSI, runtime.MachineStatusID)
		if err != nil {
			return err
		}
		if stage := s.TypedSpec().Stage; stage != runtime.MachineStageRunning {
			return fmt.Errorf("%s: expected machine stage running, got %s", n, stage)
		}
	}

	return nil
}
