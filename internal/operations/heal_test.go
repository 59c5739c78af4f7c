// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package operations_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/talos-proxmox/talos-proxmox/internal/operations"
)

func TestHealForgetsTheEarlierLifeOfANode(t *testing.T) {
	t.Parallel()

	d := described(3, 0)
	c := healthy(d)
	c.nodes[address(3)].blank = true
	c.nodes[address(3)].members = nil

	require.NoError(t, operations.Heal(t.Context(), looking(c, d), d.Members[2]))

	assert.Equal(t, []string{address(3)}, c.left)
	_, err := c.kubernetes.CoreV1().Nodes().Get(t.Context(), "node-3", metav1.GetOptions{})
	assert.True(t, apierrors.IsNotFound(err), "its Node is gone")
	require.NoError(t, operations.Heal(t.Context(), looking(c, d), d.Members[2]), "there is nothing left to do")
	assert.Len(t, c.left, 1)
}

func TestHealLeavesTheLivingAlone(t *testing.T) {
	t.Parallel()

	d := described(3, 0)
	c := healthy(d)
	require.NoError(t, operations.Heal(t.Context(), looking(c, d), d.Members[2]))
	assert.Empty(t, c.left)

	c.nodes[address(3)].silent = true
	err := operations.Heal(t.Context(), looking(c, d), d.Members[2])
	require.ErrorContains(t, err, "node node-3 (10.0.0.3): the machine does not answer after 200ms, and etcd or Kubernetes still have an earlier one")
	assert.Empty(t, c.left, "nobody knows that it is gone")
}

func TestHealDoesNotWaitLongForAClusterThatStarts(t *testing.T) {
	t.Parallel()

	d := described(3, 0)
	c := healthy(d)
	c.noAccess = errSilent
	look := looking(c, d)
	var said []string
	look.Report = func(line string) { said = append(said, line) }

	require.NoError(t, operations.Heal(t.Context(), look, d.Members[2]))
	assert.Equal(t, []string{"nobody says whether there was an earlier node-3: connection refused"}, said)
}
