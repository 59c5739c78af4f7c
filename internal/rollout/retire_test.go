// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package rollout_test

import (
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/talos-proxmox/talos-proxmox/internal/cluster"
	"github.com/talos-proxmox/talos-proxmox/internal/cluster/clustertest"
	"github.com/talos-proxmox/talos-proxmox/internal/rollout"
)

// retiring returns the end of the last nodes of a fake cluster. Its daemon sets and deployments are those
// of the whole cluster, so they are not looked at.
func retiring(c *clustertest.Fake, stays cluster.Cluster) rollout.Retire {
	stays.KubeProxy, stays.CoreDNS = false, false

	return rollout.Retire{
		Access: c, Cluster: stays, Gate: rollout.NewGate(1), Report: func(string) {},
		Drain: rollout.Drain{Timeout: 50 * time.Millisecond, Interval: time.Millisecond},
		Poll:  cluster.PollOptions{Timeout: 400 * time.Millisecond, Interval: time.Millisecond, Call: time.Second},
	}
}

func hasNode(t *testing.T, c *clustertest.Fake, name string) bool {
	t.Helper()
	list, err := c.API.CoreV1().Nodes().List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	for _, n := range list.Items {
		if n.Name == name {
			return true
		}
	}

	return false
}

// without returns the cluster without some nodes, and those.
func without(d cluster.Cluster, indexes ...int) (cluster.Cluster, []cluster.Member) {
	var leaving, stay []cluster.Member
	for i, m := range d.Members {
		gone := false
		for _, at := range indexes {
			gone = gone || at == i
		}
		if gone {
			leaving = append(leaving, m)
		} else {
			stay = append(stay, m)
		}
	}
	d.Members = stay

	return d, leaving
}

func TestRetireTakesWorkersFirstAndOneAfterTheOther(t *testing.T) {
	t.Parallel()

	d := clustertest.Describe(5, 2)
	c := clustertest.Healthy(d)
	stays, leaving := without(d, 0, 1, 6)

	require.NoError(t, retiring(c, stays).Run(t.Context(), leaving))

	assert.Equal(t, []string{clustertest.Address(7), clustertest.Address(1), clustertest.Address(2)}, c.Left)
	assert.Len(t, c.Nodes[clustertest.Address(3)].Members, 3)
	for _, m := range leaving {
		assert.False(t, hasNode(t, c, m.Hostname), m.Name)
	}
	assert.True(t, hasNode(t, c, "node-6"))
}

func TestRetirePassesOverWhoHasLeft(t *testing.T) {
	t.Parallel()

	d := clustertest.Describe(3, 1)
	c := clustertest.Healthy(d)
	stays, leaving := without(d, 3)
	require.NoError(t, retiring(c, stays).Run(t.Context(), leaving))

	require.NoError(t, retiring(c, stays).Run(t.Context(), leaving))

	assert.Equal(t, []string{clustertest.Address(4)}, c.Left)
}

func TestRetireOfASilentNodeNeedsForce(t *testing.T) {
	t.Parallel()

	d := clustertest.Describe(5, 0)
	c := clustertest.Healthy(d)
	c.Nodes[clustertest.Address(5)].Unreachable = true
	stays, leaving := without(d, 4)

	err := retiring(c, stays).Run(t.Context(), leaving)

	assert.EqualError(t, err, "retiring node node-5 (10.0.0.5): it does not answer: connection refused\n"+
		"  to remove it as it is, name it in lifecycle.force")
	assert.Len(t, c.Nodes[clustertest.Address(1)].Members, 5)

	r := retiring(c, stays)
	r.Force = []string{"node-5"}
	require.NoError(t, r.Run(t.Context(), leaving))

	assert.Len(t, c.Nodes[clustertest.Address(1)].Members, 4)
	assert.False(t, hasNode(t, c, "node-5"))
}

func TestRetireWaitsForACluster(t *testing.T) {
	t.Parallel()

	d := clustertest.Describe(3, 1)
	c := clustertest.Healthy(d)
	c.Nodes[clustertest.Address(2)].Stage = "booting"
	stays, leaving := without(d, 3)

	err := retiring(c, stays).Run(t.Context(), leaving)

	assert.ErrorContains(t, err, "retiring node node-4 (10.0.0.4): before node node-4 (10.0.0.4) goes down: ")
	assert.Empty(t, c.Left, "a cluster that is not well loses nobody")
}

func TestRetireGoesOnWithWhoWasAskedToLeave(t *testing.T) {
	t.Parallel()

	for name, gone := range map[string]int{"a control plane": 4, "a worker": 5} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			d := clustertest.Describe(5, 1)
			c := clustertest.Healthy(d)
			stays, leaving := without(d, gone)

			// The run is killed when it asks the node to leave, which the node then does by itself.
			r := retiring(c, stays)
			r.Report = func(line string) {
				if strings.HasSuffix(line, "leaves the cluster") {
					runtime.Goexit()
				}
			}
			killed := make(chan struct{})
			go func() {
				defer close(killed)
				_ = r.Run(t.Context(), leaving) // does not return
			}()
			<-killed
			require.NoError(t, c.Retire(t.Context(), leaving[0].Address))
			require.True(t, hasNode(t, c, leaving[0].Hostname))

			require.NoError(t, retiring(c, stays).Run(t.Context(), leaving), "nobody has to name it in lifecycle.force")
			assert.False(t, hasNode(t, c, leaving[0].Hostname))
		})
	}
}

func TestRetireOfANodeThatRefusesTakesTheNoteBack(t *testing.T) {
	t.Parallel()

	d := clustertest.Describe(3, 1)
	c := clustertest.Healthy(d)
	stays, leaving := without(d, 3)
	r := retiring(c, stays)
	r.Report = func(line string) {
		if strings.HasSuffix(line, "leaves the cluster") {
			c.Nodes[clustertest.Address(4)].Unreachable = true
		}
	}

	require.Error(t, r.Run(t.Context(), leaving))

	assert.ErrorContains(t, retiring(c, stays).Run(t.Context(), leaving), "it does not answer",
		"it was never asked, so its silence is not expected")
}

func TestRetireTakesADeadMemberOutBeforeAnotherCanJoin(t *testing.T) {
	t.Parallel()

	d := clustertest.Describe(4, 0)
	c := clustertest.Healthy(d)
	c.Nodes[clustertest.Address(3)].Unreachable = true
	// The fourth joins in the same run; etcd lets nobody in beside a dead member.
	joiner := c.Nodes[clustertest.Address(4)]
	joiner.Stage = "booting"
	stays, leaving := without(d, 2)
	require.EqualError(t, retiring(c, stays).Run(t.Context(), leaving), "retiring node node-3 (10.0.0.3): it does not answer: "+
		"connection refused\n  to remove it as it is, name it in lifecycle.force", "at once: nobody waits for the one that joins")

	r := retiring(c, stays)
	r.Force = []string{"node-3"}
	r.Report = func(line string) {
		if strings.HasSuffix(line, "taken out of etcd by force") {
			joiner.Stage = "running"
		}
	}

	require.NoError(t, r.Run(t.Context(), leaving))

	assert.Equal(t, []string{clustertest.Address(3)}, c.Left)
	assert.False(t, hasNode(t, c, "node-3"))
}
