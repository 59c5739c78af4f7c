// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package rollout

import (
	"context"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/talos-proxmox/talos-proxmox/internal/cluster"
	"github.com/talos-proxmox/talos-proxmox/internal/health"
)

// HealthChecker runs the checks before and after a node is disrupted.
type HealthChecker struct {
	// Access opens the cluster.
	Access cluster.Access
	// Cluster is what is supposed to run.
	Cluster cluster.Cluster
	// Poll bounds each look.
	Poll cluster.PollOptions
	// Report gets a line for each thing that is waited for.
	Report func(string)
	// Bootstrapped reports whether the cluster was ever bootstrapped, as the caller's state has it. Without it
	// the cluster counts as bootstrapped.
	Bootstrapped func(context.Context) (bool, error)
	// Force names nodes that may be given up although they do not answer.
	Force []string
}

// Before returns the check for [Gate.Enter]: it waits until every other node is healthy, so that the cluster
// can spare this one, which may itself be what is to be repaired.
func (l HealthChecker) Before(m cluster.Member) func(context.Context, Others) error {
	return func(ctx context.Context, others Others) error {
		down := func() []cluster.Member { return append(others(), m) }
		l.uncordonLeftovers(ctx, down)

		return l.wait(ctx, down)
	}
}

// After returns the check for [Gate.Leave]: it waits until the node is back and every other node healthy.
func (l HealthChecker) After() func(context.Context, Others) error {
	return l.wait
}

// Ready waits until every node is healthy at the end of a run. A node that is still cordoned by an earlier run
// that failed gets its pods back.
func (l HealthChecker) Ready(ctx context.Context) error {
	return health.WaitHealthy(ctx, l.Access, func() cluster.Cluster { return l.Cluster }, l.Poll, l.Report, func(ctx context.Context) {
		asking, cancel := context.WithTimeout(ctx, l.Poll.Call)
		defer cancel()
		l.uncordonLeftovers(asking, nobody)
	})
}

// wait polls the checks, and asks each time who is down: nodes that go together come and go meanwhile.
func (l HealthChecker) wait(ctx context.Context, down Others) error {
	c := l.Cluster
	if c.Joining {
		c.Members = l.joinedMembers(ctx, down())
	}
	now := func() cluster.Cluster {
		c.Down = down()

		return c
	}

	return health.WaitHealthy(ctx, l.Access, now, l.Poll, l.Report, nil)
}

// nobody returns no member.
func nobody() []cluster.Member { return nil }

// joinedMembers returns the members without those that Kubernetes does not know yet: they join beside this
// step or after it, and waiting for them could take for ever. Control planes stay in the list where etcd would
// have one member up without the one that goes down, or at most two without the one that leaves for good. Without an
// answer all members stay.
func (l HealthChecker) joinedMembers(ctx context.Context, down []cluster.Member) []cluster.Member {
	asking, cancel := context.WithTimeout(ctx, l.Poll.Call)
	defer cancel()
	api, err := l.Access.Kubernetes(asking)
	if err != nil {
		return l.Cluster.Members
	}
	list, err := api.CoreV1().Nodes().List(asking, metav1.ListOptions{})
	if err != nil {
		return l.Cluster.Members
	}
	known := make(map[string]bool, len(list.Items))
	planes := 0
	for _, n := range list.Items {
		known[n.Name] = true
	}
	for _, m := range l.Cluster.ControlPlanes() {
		if known[m.Hostname] {
			planes++
		}
	}
	fragile := slices.ContainsFunc(down, func(m cluster.Member) bool {
		leaves := !slices.ContainsFunc(l.Cluster.Members, func(other cluster.Member) bool { return other.Name == m.Name })

		return m.ControlPlane && (planes == 2 || planes == 1 && leaves && known[m.Hostname])
	})

	return slices.DeleteFunc(slices.Clone(l.Cluster.Members), func(m cluster.Member) bool {
		return !known[m.Hostname] && (!m.ControlPlane || !fragile)
	})
}
