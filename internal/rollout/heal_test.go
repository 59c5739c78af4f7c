// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package rollout_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/talos-proxmox/talos-proxmox/internal/cluster/clustertest"
	"github.com/talos-proxmox/talos-proxmox/internal/rollout"
)

func TestHealForgetsTheEarlierLifeOfANode(t *testing.T) {
	t.Parallel()

	d := clustertest.Describe(3, 0)
	c := clustertest.Healthy(d)
	c.Nodes[clustertest.Address(3)].Blank = true
	c.Nodes[clustertest.Address(3)].Members = nil

	require.NoError(t, rollout.Heal(t.Context(), looking(c, d), d.Members[2]))

	assert.Equal(t, []string{clustertest.Address(3)}, c.Left)
	_, err := c.API.CoreV1().Nodes().Get(t.Context(), "node-3", metav1.GetOptions{})
	assert.True(t, apierrors.IsNotFound(err), "its Node is gone")
	require.NoError(t, rollout.Heal(t.Context(), looking(c, d), d.Members[2]), "there is nothing left to do")
	assert.Len(t, c.Left, 1)
}

func TestHealLeavesTheLivingAlone(t *testing.T) {
	t.Parallel()

	d := clustertest.Describe(3, 0)
	c := clustertest.Healthy(d)
	require.NoError(t, rollout.Heal(t.Context(), looking(c, d), d.Members[2]))
	assert.Empty(t, c.Left)

	c.Nodes[clustertest.Address(3)].Unreachable = true
	err := rollout.Heal(t.Context(), looking(c, d), d.Members[2])
	require.ErrorContains(t, err, "node node-3 (10.0.0.3): the machine does not answer after 1s, and etcd or Kubernetes still have an earlier one")
	assert.Empty(t, c.Left, "nobody knows that it is gone")
}

func TestHealDoesNotWaitLongForAClusterThatStarts(t *testing.T) {
	t.Parallel()

	d := clustertest.Describe(3, 0)
	c := clustertest.Healthy(d)
	c.AccessError = clustertest.ErrUnreachable
	checker := looking(c, d)
	var said []string
	checker.Report = func(line string) { said = append(said, line) }

	require.NoError(t, rollout.Heal(t.Context(), checker, d.Members[2]))
	assert.Equal(t, []string{"cannot tell whether there was an earlier node-3: connection refused"}, said)
}
