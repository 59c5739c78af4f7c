// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package rollout_test

import (
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/talos-proxmox/talos-proxmox/internal/cluster"
	"github.com/talos-proxmox/talos-proxmox/internal/cluster/clustertest"
	"github.com/talos-proxmox/talos-proxmox/internal/rollout"
)

func TestLookAroundTheTimeThatANodeIsDown(t *testing.T) {
	t.Parallel()

	d := clustertest.Describe(3, 1)
	c := clustertest.Healthy(d)
	l := rollout.HealthChecker{
		Access: c, Cluster: d, Report: func(string) {},
		Poll: cluster.PollOptions{Timeout: time.Second, Interval: time.Millisecond, Call: time.Second},
	}
	c.Change(clustertest.Address(1), func(n *clustertest.Node) { n.Unreachable = true })

	require.NoError(t, l.Before(d.Members[0])(t.Context(), down()), "it may itself be what is repaired")
	require.Error(t, l.Before(d.Members[1])(t.Context(), down()), "a second control plane would be down")
	require.NoError(t, l.Before(d.Members[3])(t.Context(), down(d.Members[0])), "the other one is known to be down")
	require.Error(t, l.After()(t.Context(), down()), "it is not back")
	c.Change(clustertest.Address(1), func(n *clustertest.Node) { n.Unreachable = false })
	require.NoError(t, l.After()(t.Context(), down()))
}

// down returns those that are known to be down.
func down(members ...cluster.Member) rollout.Others {
	return func() []cluster.Member { return slices.Clone(members) }
}

// Workers that go together come and go: one that goes down while another waits to be found well is waited
// for by nobody, or each would wait for all the others.
func TestLookLeavesOutWhoGoesDownMeanwhile(t *testing.T) {
	t.Parallel()

	d := clustertest.Describe(1, 3)
	c := clustertest.Healthy(d)
	l := looking(c, d)
	l.Poll.Timeout = time.Minute
	g := rollout.NewGate(2)
	first, second := d.Members[1], d.Members[2]
	require.NoError(t, g.Enter(t.Context(), first, l.Before(first)))

	c.Change(clustertest.Address(2), func(n *clustertest.Node) { n.Unreachable = true })
	waits := make(chan struct{})
	var once sync.Once
	l.Report = func(string) { once.Do(func() { close(waits) }) }
	left := make(chan error, 1)
	go func() { left <- g.Leave(t.Context(), first, l.After()) }()
	<-waits // for the first, which is not back

	require.NoError(t, g.Enter(t.Context(), second, fine))
	c.Change(clustertest.Address(3), func(n *clustertest.Node) { n.Unreachable = true })
	c.Change(clustertest.Address(2), func(n *clustertest.Node) { n.Unreachable = false })
	require.NoError(t, <-left, "the second is down, and in its turn")
}
