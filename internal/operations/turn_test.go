// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package operations_test

import (
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

	require.NoError(t, l.Before(d.Members[0])(t.Context(), nil), "it may itself be what is repaired")
	require.Error(t, l.Before(d.Members[1])(t.Context(), nil), "a second control plane would be down")
	require.NoError(t, l.Before(d.Members[3])(t.Context(), d.Members[:1]), "the other one is known to be down")
	require.Error(t, l.After()(t.Context(), nil), "it is not back")
	c.change(address(1), func(n *node) { n.silent = false })
	require.NoError(t, l.After()(t.Context(), nil))
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
