// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package rollout_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/types"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/talos-proxmox/talos-proxmox/internal/cluster/clustertest"
	"github.com/talos-proxmox/talos-proxmox/internal/rollout"
)

func TestLookReleasesWhatAnInterruptedRunDrained(t *testing.T) {
	t.Parallel()

	d := clustertest.Describe(3, 0)
	c := clustertest.Healthy(d)
	drain := rollout.Drain{Timeout: time.Second, Interval: time.Millisecond}
	require.NoError(t, drain.Empty(t.Context(), c.API, "node-2", func(string) {}))

	require.NoError(t, looking(c, d).Before(d.Members[0])(t.Context(), down()))
	assert.False(t, unschedulable(t, c, "node-2"))

	require.NoError(t, drain.Empty(t.Context(), c.API, "node-2", func(string) {}))
	require.NoError(t, looking(c, d).Before(d.Members[0])(t.Context(), down(d.Members[1])))
	assert.True(t, unschedulable(t, c, "node-2"), "it is drained for something now")
	require.NoError(t, rollout.Uncordon(t.Context(), c.API, "node-2"))

	_, err := c.API.CoreV1().Nodes().Patch(t.Context(), "node-3", types.StrategicMergePatchType,
		[]byte(`{"spec":{"unschedulable":true}}`), metav1.PatchOptions{})
	require.NoError(t, err)
	require.ErrorContains(t, looking(c, d).Before(d.Members[0])(t.Context(), down()), "the node is cordoned")
	assert.True(t, unschedulable(t, c, "node-3"), "somebody else cordoned it")
}

// A node that was drained before it failed to return has nobody who takes another turn for it: the
// machine's edit is done, so that only the ready gate looks again.
func TestReadyReleasesWhatAFailedRunDrained(t *testing.T) {
	t.Parallel()

	d := clustertest.Describe(3, 0)
	c := clustertest.Healthy(d)
	drain := rollout.Drain{Timeout: time.Second, Interval: time.Millisecond}
	require.NoError(t, drain.Empty(t.Context(), c.API, "node-2", func(string) {}))

	require.NoError(t, looking(c, d).Ready(t.Context()))
	assert.False(t, unschedulable(t, c, "node-2"))

	_, err := c.API.CoreV1().Nodes().Patch(t.Context(), "node-3", types.StrategicMergePatchType,
		[]byte(`{"spec":{"unschedulable":true}}`), metav1.PatchOptions{})
	require.NoError(t, err)
	require.ErrorContains(t, looking(c, d).Ready(t.Context()), "the node is cordoned")
	assert.True(t, unschedulable(t, c, "node-3"), "somebody else cordoned it")
}
