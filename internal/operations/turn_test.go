// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package operations_test

import (
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/talos-proxmox/talos-proxmox/internal/operations"
)

func TestLookAroundTheTimeThatANodeIsDown(t *testing.T) {
	t.Parallel()

	d := described(3, 1)
	c := healthy(d)
	l := operations.Look{
		Access: c, Cluster: d, Report: func(string) {},
		Patience: operations.Patience{Timeout: 20 * time.Millisecond, Interval: time.Millisecond, Call: time.Second},
	}
	c.change(address(1), func(n *node) { n.silent = true })

	require.NoError(t, l.Before(d.Members[0])(t.Context(), down()), "it may itself be what is repaired")
	require.Error(t, l.Before(d.Members[1])(t.Context(), down()), "a second control plane would be down")
	require.NoError(t, l.Before(d.Members[3])(t.Context(), down(d.Members[0])), "the other one is known to be down")
	require.Error(t, l.After()(t.Context(), down()), "it is not back")
	c.change(address(1), func(n *node) { n.silent = false })
	require.NoError(t, l.After()(t.Context(), down()))
}

// down are those that are known to be down.
func down(members ...operations.Member) operations.Others {
	return func() []operations.Member { return slices.Clone(members) }
}

// Workers that go together come and go: one that goes down while another waits to be found well is waited
// for by nobody, or each would wait for all the others.
func TestLookLeavesOutWhoGoesDownMeanwhile(t *testing.T) {
	t.Parallel()

	d := described(1, 3)
	c := healthy(d)
	l := looking(c, d)
	l.Patience.Timeout = time.Minute
	g := operations.NewGate(2)
	first, second := d.Members[1], d.Members[2]
	require.NoError(t, g.Enter(t.Context(), first, l.Before(first)))

	c.change(address(2), func(n *node) { n.silent = true })
	waits := make(chan struct{})
	var once sync.Once
	l.Report = func(string) { once.Do(func() { close(waits) }) }
	left := make(chan error, 1)
	go func() { left <- g.Leave(t.Context(), first, l.After()) }()
	<-waits // for the first, which is not back

	require.NoError(t, g.Enter(t.Context(), second, fine))
	c.change(address(3), func(n *node) { n.silent = true })
	c.change(address(2), func(n *node) { n.silent = false })
	require.NoError(t, <-left, "the second is down, and in its turn")
}

func TestLookTellsWhetherAClusterLives(t *testing.T) {
	t.Parallel()

	d := described(3, 0)
	c := healthy(d)
	l := operations.Look{Access: c, Cluster: d, Patience: operations.Patience{Call: time.Second}}

	c.nodes[address(1)].silent, c.nodes[address(2)].silent = true, true
	assert.True(t, l.Lives(t.Context()))
	c.nodes[address(3)].silent = true
	assert.False(t, l.Lives(t.Context()))
}
