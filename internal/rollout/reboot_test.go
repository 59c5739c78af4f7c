// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package rollout_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/talos-proxmox/talos-proxmox/internal/cluster"
	"github.com/talos-proxmox/talos-proxmox/internal/cluster/clustertest"
	"github.com/talos-proxmox/talos-proxmox/internal/rollout"
)

// cordoned reports whether Kubernetes keeps pods off a node.
func cordoned(t *testing.T, c *clustertest.Fake, m cluster.Member) bool {
	t.Helper()
	n, err := c.API.CoreV1().Nodes().Get(t.Context(), m.Hostname, metav1.GetOptions{})
	require.NoError(t, err)

	return n.Spec.Unschedulable
}

// drained returns a cluster of three control planes with pods on the first node, and how they are evicted.
func drained(t *testing.T, refusals int) (*clustertest.Fake, cluster.Cluster, func() []string) {
	t.Helper()
	d := clustertest.Describe(3, 0)
	c := clustertest.Healthy(d)
	api, evicted := withEvictions(refusals, pod("web", nil))
	for _, m := range d.Members[1:] {
		require.NoError(t, api.Tracker().Add(clustertest.KubernetesNode(m, "True")))
	}
	daemonSets, err := c.API.AppsV1().DaemonSets("").List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	for _, o := range daemonSets.Items {
		require.NoError(t, api.Tracker().Add(&o))
	}
	deployments, err := c.API.AppsV1().Deployments("").List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	for _, o := range deployments.Items {
		require.NoError(t, api.Tracker().Add(&o))
	}
	first, err := api.CoreV1().Nodes().Get(t.Context(), "node-1", metav1.GetOptions{})
	require.NoError(t, err)
	first.Status = clustertest.KubernetesNode(d.Members[0], "True").Status
	_, err = api.CoreV1().Nodes().UpdateStatus(t.Context(), first, metav1.UpdateOptions{})
	require.NoError(t, err)
	c.API = api

	return c, d, evicted
}

func TestRebootDrainsAndUncordons(t *testing.T) {
	t.Parallel()

	c, d, evicted := drained(t, 1)
	first := d.Members[0]
	gate := rollout.NewGate(1)
	way := around(gate, looking(c, d))
	var r rollout.Reboot

	require.NoError(t, r.Enter(t.Context(), way, first))
	assert.Equal(t, []string{"web"}, evicted())
	assert.True(t, cordoned(t, c, first))
	assert.False(t, free(t, gate, d.Members[1]))

	c.Change(first.Address, func(n *clustertest.Node) { n.Boots++ })
	require.NoError(t, r.Leave(t.Context(), way, first, nil))
	assert.False(t, cordoned(t, c, first))
	assert.True(t, free(t, gate, d.Members[1]))
}

func TestRebootWaitsForDisruptionBudgets(t *testing.T) {
	t.Parallel()

	c, d, _ := drained(t, 1<<30)
	first := d.Members[0]
	gate := rollout.NewGate(1)
	var r rollout.Reboot

	way := around(gate, looking(c, d))
	way.Drain = patient(50 * time.Millisecond)
	err := r.Enter(t.Context(), way, first)
	require.ErrorContains(t, err, "before node node-1 (10.0.0.1) goes down: draining node node-1: after 50ms these pods are left: apps/web")
	assert.False(t, cordoned(t, c, first), "it did not go down")
	assert.False(t, free(t, gate, d.Members[1]), "the gate is closed")
}

// A provider that believes that an edit was made reboots nothing: an earlier run failed in between.
func TestRebootThatDidNotHappenIsMade(t *testing.T) {
	t.Parallel()

	c, d, _ := drained(t, 0)
	first := d.Members[0]
	way := around(rollout.NewGate(1), looking(c, d))
	var r rollout.Reboot
	require.NoError(t, r.Enter(t.Context(), way, first))

	rebooted := 0
	require.NoError(t, r.Leave(t.Context(), way, first, func(context.Context) error {
		rebooted++
		c.Change(first.Address, func(n *clustertest.Node) { n.Boots++ })

		return nil
	}))
	assert.Equal(t, 1, rebooted)
	assert.False(t, cordoned(t, c, first))
}

func TestRebootThatFailedGivesTheNodeBack(t *testing.T) {
	t.Parallel()

	c, d, _ := drained(t, 0)
	first := d.Members[0]
	gate := rollout.NewGate(1)
	way := around(gate, looking(c, d))
	var r rollout.Reboot
	r.Fail(t.Context(), way, first, errors.New("not inside"))
	require.NoError(t, r.Enter(t.Context(), way, first))

	r.Fail(t.Context(), way, first, errors.New("the task failed"))
	assert.False(t, cordoned(t, c, first), "it still runs")
	assert.False(t, free(t, gate, d.Members[1]), "the gate is closed")
}
