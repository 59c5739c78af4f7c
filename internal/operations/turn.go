// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package operations

import (
	"context"
	"slices"
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
func (l Look) Before(m Member) func(context.Context, []Member) error {
	return func(ctx context.Context, down []Member) error {
		return l.wait(ctx, append(slices.Clone(down), m))
	}
}

// After waits until the node is back and every other node is well. It suits [Gate.Leave].
func (l Look) After() func(context.Context, []Member) error {
	return l.wait
}

func (l Look) wait(ctx context.Context, down []Member) error {
	c := l.Cluster
	c.Down = down

	return WaitHealthy(ctx, l.Access, c, l.Patience, l.Report)
}

// Lives says whether any control plane serves etcd: a cluster of which none does was never
// bootstrapped or is down altogether, and has nothing to lose by another node that goes down.
func (l Look) Lives(ctx context.Context) bool {
	api, err := l.Access.Talos(ctx)
	if err != nil {
		return false
	}
	answers := make(chan bool)
	planes := l.Cluster.ControlPlanes()
	for _, m := range planes {
		go func() {
			calling, cancel := context.WithTimeout(ctx, l.Patience.Call)
			defer cancel()
			members, err := api.EtcdMembers(calling, m.Address)
			answers <- err == nil && len(members) > 0
		}()
	}
	lives := false
	for range planes {
		lives = <-answers || lives
	}

	return lives
}
