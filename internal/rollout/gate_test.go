// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package rollout_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/talos-proxmox/talos-proxmox/internal/cluster"
	"github.com/talos-proxmox/talos-proxmox/internal/cluster/clustertest"
	"github.com/talos-proxmox/talos-proxmox/internal/rollout"
)

func fine(context.Context, rollout.Others) error { return nil }

func TestGateLetsOneControlPlaneDownAtATime(t *testing.T) {
	t.Parallel()

	g := rollout.NewGate(3)
	members := clustertest.Describe(5, 3).Members
	var mu sync.Mutex
	planes, workers, mostPlanes, mostWorkers, mixed := 0, 0, 0, 0, false
	count := func(m cluster.Member, by int) {
		mu.Lock()
		defer mu.Unlock()
		if m.ControlPlane {
			planes += by
		} else {
			workers += by
		}
		mostPlanes, mostWorkers = max(mostPlanes, planes), max(mostWorkers, workers)
		mixed = mixed || planes > 0 && workers > 0
	}

	var done sync.WaitGroup
	for _, m := range members {
		done.Go(func() {
			assert.NoError(t, g.Enter(t.Context(), m, func(context.Context, rollout.Others) error {
				count(m, 1)

				return nil
			}))
			assert.NoError(t, g.Leave(t.Context(), m, func(context.Context, rollout.Others) error {
				count(m, -1)

				return nil
			}))
		})
	}
	done.Wait()

	assert.Equal(t, 1, mostPlanes)
	assert.LessOrEqual(t, mostWorkers, 3)
	assert.False(t, mixed, "no worker beside a control plane")
}

func TestGateTellsWhoElseIsDown(t *testing.T) {
	t.Parallel()

	g := rollout.NewGate(2)
	workers := clustertest.Describe(0, 3).Members
	require.NoError(t, g.Enter(t.Context(), workers[0], fine))

	require.NoError(t, g.Enter(t.Context(), workers[1], func(_ context.Context, others rollout.Others) error {
		assert.Equal(t, workers[:1], others())

		return nil
	}))
}

func TestGateClosesAfterTheFirstFailure(t *testing.T) {
	t.Parallel()

	lost := errors.New("it did not come back")
	for name, fail := range map[string]func(*rollout.Gate, cluster.Member){
		"the step failed": func(g *rollout.Gate, m cluster.Member) { g.Fail(m, lost) },
		"the node is not back": func(g *rollout.Gate, m cluster.Member) {
			err := g.Leave(t.Context(), m, func(context.Context, rollout.Others) error { return lost })
			assert.EqualError(t, err, "after node node-1 (10.0.0.1) was down: it did not come back")
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			g := rollout.NewGate(1)
			members := clustertest.Describe(3, 0).Members
			require.NoError(t, g.Enter(t.Context(), members[0], fine))
			waiting := make(chan error, 1)
			go func() { waiting <- g.Enter(t.Context(), members[1], fine) }()

			fail(g, members[0])

			for _, err := range []error{<-waiting, g.Enter(t.Context(), members[2], fine)} {
				var closed *rollout.Closed
				require.ErrorAs(t, err, &closed)
				assert.Equal(t, "node-1 (10.0.0.1)", closed.Failed)
				assert.ErrorIs(t, err, lost)
			}
		})
	}
}

func TestGateClosesWhenTheClusterIsNotWell(t *testing.T) {
	t.Parallel()

	g := rollout.NewGate(1)
	members := clustertest.Describe(3, 0).Members
	sick := errors.New("etcd has lost a member")

	err := g.Enter(t.Context(), members[0], func(context.Context, rollout.Others) error { return sick })
	assert.EqualError(t, err, "before node node-1 (10.0.0.1) goes down: etcd has lost a member")

	assert.EqualError(t, g.Enter(t.Context(), members[1], fine),
		"node node-2 (10.0.0.2) is left unchanged because node node-1 (10.0.0.1) failed before: "+
			"before node node-1 (10.0.0.1) goes down: etcd has lost a member")
}

func TestGateToleratesWhoIsNotInside(t *testing.T) {
	t.Parallel()

	g := rollout.NewGate(1)
	members := clustertest.Describe(2, 0).Members
	require.NoError(t, g.Leave(t.Context(), members[0], func(context.Context, rollout.Others) error {
		return errors.New("must not be asked")
	}))
	g.Fail(members[0], errors.New("the provider failed before the gate was asked"))

	assert.NoError(t, g.Enter(t.Context(), members[1], fine))
}

func TestGateWaitIsBounded(t *testing.T) {
	t.Parallel()

	g := rollout.NewGate(1)
	members := clustertest.Describe(2, 0).Members
	require.NoError(t, g.Enter(t.Context(), members[0], fine))
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()

	err := g.Enter(ctx, members[1], fine)

	assert.EqualError(t, err, "node node-2 (10.0.0.2) could not go down: [node-1 (10.0.0.1)] is still down: context deadline exceeded")
}
