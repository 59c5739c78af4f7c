// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package operations

import (
	"context"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Look is how a cluster is looked at around the time that a node is down.
type Look struct {
	// Access opens the cluster.
	Access Access
	// Cluster is what is supposed to run.
	Cluster Cluster
	// Patience bounds each look.
	Patience Patience
	// Report gets a line for each thing that is waited for.
	Report func(string)
}

// Before waits until every other node is well, so that the cluster can spare this one: it may itself be
// what is to be repaired. It suits [Gate.Enter].
func (l Look) Before(m Member) func(context.Context, Others) error {
	return func(ctx context.Context, others Others) error {
		down := func() []Member { return append(others(), m) }
		l.release(ctx, down)

		return l.wait(ctx, down)
	}
}

// After waits until the node is back and every other node is well. It suits [Gate.Leave].
func (l Look) After() func(context.Context, Others) error {
	return l.wait
}

// Ready waits until every node is well when nothing takes one down any more: a node that is still drained
// here was left so by a run that failed, and gets its pods again.
func (l Look) Ready(ctx context.Context) error {
	return waitHealthy(ctx, l.Access, constant(l.Cluster), l.Patience, l.Report, func(ctx context.Context) {
		asking, cancel := context.WithTimeout(ctx, l.Patience.Call)
		defer cancel()
		l.release(asking, nobody)
	})
}

// wait looks anew each time who is down: nodes that go together come and go while it waits.
func (l Look) wait(ctx context.Context, down Others) error {
	c := l.Cluster
	if c.Joining {
		c.Members = l.joined(ctx, down())
	}
	now := func() Cluster {
		c.Down = down()

		return c
	}

	return waitHealthy(ctx, l.Access, now, l.Patience, l.Report, func(context.Context) {})
}

// nobody is down.
func nobody() []Member { return nil }

// joined are the members without those that Kubernetes does not know yet: they join beside this step or
// after it, so that waiting for them could last for ever. Where they are control planes and etcd has
// two members only, they stay: the one that is left would stop serving, so they are waited for. Where
// nobody says who has joined, all have to be well.
func (l Look) joined(ctx context.Context, down []Member) []Member {
	asking, cancel := context.WithTimeout(ctx, l.Patience.Call)
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
	fragile := planes == 2 && slices.ContainsFunc(down, func(m Member) bool { return m.ControlPlane })

	return slices.DeleteFunc(slices.Clone(l.Cluster.Members), func(m Member) bool {
		return !known[m.Hostname] && (!m.ControlPlane || !fragile)
	})
}

// Lives says whether any control plane serves etcd: a cluster of which none does was never
// bootstrapped or is down altogether, and has nothing to lose by another node that goes down.
func (l Look) Lives(ctx context.Context) bool {
	api, err := l.Access.Talos(ctx)
	if err != nil {
		return false
	}
	planes := l.Cluster.ControlPlanes()
	answers := make(chan bool, len(planes))
	for _, m := range planes {
		go func() {
			calling, cancel := context.WithTimeout(ctx, l.Patience.Call)
			defer cancel()
			members, err := api.EtcdMembers(calling, m.Address)
			answers <- err == nil && len(members) > 0
		}()
	}
	for range planes {
		if <-answers {
			return true
		}
	}

	return false
}
