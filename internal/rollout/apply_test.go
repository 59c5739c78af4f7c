// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package rollout_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/talos-proxmox/talos-proxmox/internal/cluster"
	"github.com/talos-proxmox/talos-proxmox/internal/cluster/clustertest"
	"github.com/talos-proxmox/talos-proxmox/internal/rollout"
)

// looking returns a look at a fake cluster with little poll.
func looking(c *clustertest.Fake, d cluster.Cluster) rollout.HealthChecker {
	return rollout.HealthChecker{
		Access: c, Cluster: d, Report: func(string) {},
		Poll: cluster.PollOptions{Timeout: time.Second, Interval: time.Millisecond, Call: 200 * time.Millisecond},
	}
}

// around returns what leads through the gate with little patience.
func around(gate *rollout.Gate, l rollout.HealthChecker) rollout.Disruption {
	return rollout.Disruption{Gate: gate, Checker: l, Drain: patient(time.Minute)}
}

// free reports whether another control plane would get a turn at once.
func free(t *testing.T, g *rollout.Gate, m cluster.Member) bool {
	t.Helper()
	trying, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	nothing := func(context.Context, rollout.Others) error { return nil }
	if err := g.Enter(trying, m, nothing); err != nil {
		return false
	}
	require.NoError(t, g.Leave(t.Context(), m, nothing))

	return true
}

func TestApplyTakesATurnWhereTheNodeReboots(t *testing.T) {
	t.Parallel()

	d := clustertest.Describe(3, 0)
	c := clustertest.Healthy(d)
	gate, first, second := rollout.NewGate(1), d.Members[0], d.Members[1]
	var a rollout.Apply

	require.NoError(t, a.Before(t.Context(), around(gate, looking(c, d)), first, []byte("labels")))
	assert.True(t, free(t, gate, second), "what is applied in place waits for nobody")
	require.NoError(t, a.After(t.Context(), around(gate, looking(c, d)), first))

	require.NoError(t, a.Before(t.Context(), around(gate, looking(c, d)), first, []byte("reboot")))
	assert.False(t, free(t, gate, second))
	early := a.After(t.Context(), around(gate, looking(c, d)), first)
	require.ErrorContains(t, early, "after node node-1 (10.0.0.1) was down: it is not back after 1s: "+
		"it has not rebooted yet")
	assert.False(t, free(t, gate, second), "the gate is closed")
}

func TestApplyWaitsForTheRebootThatComesAfterTheAnswer(t *testing.T) {
	t.Parallel()

	d := clustertest.Describe(3, 0)
	c := clustertest.Healthy(d)
	gate := rollout.NewGate(1)
	var a rollout.Apply
	require.NoError(t, a.Before(t.Context(), around(gate, looking(c, d)), d.Members[0], []byte("reboot")))

	done := make(chan error)
	go func() { done <- a.After(t.Context(), around(gate, looking(c, d)), d.Members[0]) }()
	assert.False(t, free(t, gate, d.Members[1]), "the node still answers as before")
	c.Change(clustertest.Address(1), func(n *clustertest.Node) { n.Boots++ })
	require.NoError(t, <-done)
	assert.True(t, free(t, gate, d.Members[1]))
}

func TestApplyNeedsNoTurn(t *testing.T) {
	t.Parallel()

	for name, prepare := range map[string]func(*clustertest.Fake){
		"where the machine joins with it": func(c *clustertest.Fake) { c.Nodes[clustertest.Address(1)].Blank = true },
		"where the cluster was never bootstrapped": func(c *clustertest.Fake) {
			for _, n := range c.Nodes {
				n.Members = nil
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			d := clustertest.Describe(3, 0)
			c := clustertest.Healthy(d)
			prepare(c)
			gate := rollout.NewGate(1)
			l := looking(c, d)
			l.Bootstrapped = bootstrapped(false)
			var a rollout.Apply
			require.NoError(t, a.Before(t.Context(), around(gate, l), d.Members[0], []byte("reboot")))
			assert.True(t, free(t, gate, d.Members[1]))
		})
	}
}

// The provider goes on for ten minutes; what the stack allows counts.
func TestApplyEndsWithinItsTimeout(t *testing.T) {
	t.Parallel()

	d := clustertest.Describe(3, 0)
	c := clustertest.Healthy(d)
	c.Nodes[clustertest.Address(1)].Unreachable = true
	gate := rollout.NewGate(1)
	way := around(gate, looking(c, d))
	way.Checker.Poll.Timeout, way.ApplyTimeout = time.Hour, 50*time.Millisecond
	var a rollout.Apply

	err := a.Before(t.Context(), way, d.Members[0], []byte("labels"))
	require.ErrorContains(t, err, "node node-1 (10.0.0.1): it did not take its configuration: "+
		"it did not say within 50ms what that would do: connection refused\n  look at: the console of node-1")
	assert.True(t, free(t, gate, d.Members[1]))
}

func TestApplyStopsAtWhatTheNodeRefuses(t *testing.T) {
	t.Parallel()

	d := clustertest.Describe(3, 0)
	c := clustertest.Healthy(d)
	c.Nodes[clustertest.Address(1)].Refuses = status.Error(codes.InvalidArgument, "unknown field")
	var a rollout.Apply

	err := a.Before(t.Context(), around(rollout.NewGate(1), looking(c, d)), d.Members[0], []byte("labels"))
	require.ErrorContains(t, err, "node node-1 (10.0.0.1): ")
	require.ErrorContains(t, err, "unknown field")
}

func TestLookLeavesOutThoseThatJoinLater(t *testing.T) {
	t.Parallel()

	d := clustertest.Describe(4, 1)
	d.Joining, d.Leaving = true, true
	c := clustertest.Healthy(d)
	c.Nodes[clustertest.Address(4)].Blank = true
	forget := func(i int) {
		require.NoError(t, c.API.CoreV1().Nodes().Delete(t.Context(), d.Members[i].Hostname, metav1.DeleteOptions{}))
	}
	forget(3)
	require.NoError(t, looking(c, d).Before(d.Members[0])(t.Context(), down()), "node-4 has not joined yet")

	forget(2)
	c.Nodes[clustertest.Address(3)].Blank = true
	require.Error(t, looking(c, d).Before(d.Members[0])(t.Context(), down()), "of two members none can be spared")
	stays := d
	stays.Members = slices.DeleteFunc(slices.Clone(d.Members), func(m cluster.Member) bool { return m.Name == d.Members[1].Name })
	require.Error(t, looking(c, stays).Before(d.Members[1])(t.Context(), down()), "the second of two members cannot leave either")
	require.NoError(t, looking(c, d).Before(d.Members[4])(t.Context(), down()), "a worker can")
	c.AccessError = errors.New("no answer")
	require.Error(t, looking(c, d).Before(d.Members[4])(t.Context(), down()), "where nobody says who has joined, all must be well")
}

// TestApplyTriesWhatNeedsNoReboot applies in place: a node that is harmed takes it back by itself, and no other node gets it.
func TestApplyTriesWhatNeedsNoReboot(t *testing.T) {
	t.Parallel()

	d := clustertest.Describe(3, 0)
	c := clustertest.Healthy(d)
	first := c.Nodes[clustertest.Address(1)]
	var a rollout.Apply
	l := looking(c, d)
	require.NoError(t, a.Before(t.Context(), around(rollout.NewGate(1), l), d.Members[0], []byte("gateway")))
	assert.Equal(t, []string{"gateway"}, first.Tried)

	first.OnTry = func(n *clustertest.Node) { n.Unreachable = true }
	err := a.Before(t.Context(), around(rollout.NewGate(1), l), d.Members[0], []byte("wrong gateway"))
	require.ErrorContains(t, err, "node node-1 (10.0.0.1): it does not stay healthy with its new configuration: "+
		`cluster "test" is not healthy: check "the Talos API answers on every node" fails on node node-1 (10.0.0.1): connection refused`)
	require.ErrorContains(t, err, "it takes the configuration back within 2s by itself", "twice as long as it is looked at")
}

// A firewall lets what is open go on: a node is looked at over a new connection.
func TestApplyTriesOverANewConnection(t *testing.T) {
	t.Parallel()

	d := clustertest.Describe(3, 0)
	c := clustertest.Healthy(d)
	c.Nodes[clustertest.Address(1)].OnTry = func(n *clustertest.Node) { n.Firewall = true }
	var a rollout.Apply
	err := a.Before(t.Context(), around(rollout.NewGate(1), looking(c, d)), d.Members[0], []byte("firewall"))
	require.ErrorContains(t, err, `check "the Talos API answers on every node" fails on node node-1 (10.0.0.1): connection refused`)
}

func TestApplyRepairsWithoutATrial(t *testing.T) {
	t.Parallel()

	d := clustertest.Describe(3, 0)
	c := clustertest.Healthy(d)
	first := c.Nodes[clustertest.Address(1)]
	first.Pods[0].Ready = false
	c.Nodes[clustertest.Address(2)].Unreachable = true
	var a rollout.Apply
	var lines []string
	l := looking(c, d)
	l.Report = func(line string) { lines = append(lines, line) }

	require.NoError(t, a.Before(t.Context(), around(rollout.NewGate(1), l), d.Members[0], []byte("arguments")))
	assert.Empty(t, first.Tried)
	require.Len(t, lines, 1)
	assert.Contains(t, lines[0], "node-1 is not healthy, so its configuration is applied without a trial: ")
	require.NoError(t, a.Before(t.Context(), around(rollout.NewGate(1), l), d.Members[2], []byte("arguments")))
	assert.Len(t, c.Nodes[clustertest.Address(3)].Tried, 1, "what is wrong elsewhere does not count")
}

// A configuration that harms the node which tried it repairs no other one: nobody else gets it.
func TestApplyStopsWhenTheClusterSuffersFromIt(t *testing.T) {
	t.Parallel()

	d := clustertest.Describe(3, 0)
	c := clustertest.Healthy(d)
	first, second := c.Nodes[clustertest.Address(1)], c.Nodes[clustertest.Address(2)]
	gate := rollout.NewGate(1)
	var a, b rollout.Apply
	l := looking(c, d)
	require.NoError(t, a.Before(t.Context(), around(gate, l), d.Members[0], []byte("arguments")))

	first.Pods[0].Ready, second.Pods[0].Ready = false, false
	err := b.Before(t.Context(), around(gate, l), d.Members[1], []byte("arguments"))
	require.ErrorContains(t, err, "node node-2 (10.0.0.2): node node-1 (10.0.0.1) is not healthy since it got its configuration: ")
	require.ErrorContains(t, err, "no more nodes are changed")
	assert.Empty(t, second.Tried)
}
