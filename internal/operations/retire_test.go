// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package operations_test

import (
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/talos-proxmox/talos-proxmox/internal/operations"
)

// retiring is the end of the last nodes of a fake cluster. Its daemon sets and deployments are those
// of the whole cluster, so they are not looked at.
func retiring(c *cluster, stays operations.Cluster) operations.Retire {
	stays.KubeProxy, stays.CoreDNS = false, false

	return operations.Retire{
		Access: c, Cluster: stays, Gate: operations.NewGate(1), Report: func(string) {},
		Drain:    operations.Drain{Timeout: 50 * time.Millisecond, Interval: time.Millisecond},
		Patience: operations.Patience{Timeout: 400 * time.Millisecond, Interval: time.Millisecond, Call: time.Second},
	}
}

func hasNode(t *testing.T, c *cluster, name string) bool {
	t.Helper()
	list, err := c.kubernetes.CoreV1().Nodes().List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	for _, n := range list.Items {
		if n.Name == name {
			return true
		}
	}

	return false
}

// without is the cluster without some nodes, and those.
func without(d operations.Cluster, indexes ...int) (operations.Cluster, []operations.Member) {
	var leaving, stay []operations.Member
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

	d := described(5, 2)
	c := healthy(d)
	stays, leaving := without(d, 0, 1, 6)

	require.NoError(t, retiring(c, stays).Run(t.Context(), leaving))

	assert.Equal(t, []string{address(7), address(1), address(2)}, c.left)
	assert.Len(t, c.nodes[address(3)].members, 3)
	for _, m := range leaving {
		assert.False(t, hasNode(t, c, m.Hostname), m.Name)
	}
	assert.True(t, hasNode(t, c, "node-6"))
}

func TestRetirePassesOverWhoHasLeft(t *testing.T) {
	t.Parallel()

	d := described(3, 1)
	c := healthy(d)
	stays, leaving := without(d, 3)
	require.NoError(t, retiring(c, stays).Run(t.Context(), leaving))

	require.NoError(t, retiring(c, stays).Run(t.Context(), leaving))

	assert.Equal(t, []string{address(4)}, c.left)
}

func TestRetireOfASilentNodeNeedsForce(t *testing.T) {
	t.Parallel()

	d := described(5, 0)
	c := healthy(d)
	c.nodes[address(5)].silent = true
	stays, leaving := without(d, 4)

	err := retiring(c, stays).Run(t.Context(), leaving)

	assert.EqualError(t, err, "retiring node node-5 (10.0.0.5): it does not answer: connection refused\n"+
		"  to remove it as it is, name it in lifecycle.force")
	assert.Len(t, c.nodes[address(1)].members, 5)

	r := retiring(c, stays)
	r.Force = []string{"node-5"}
	require.NoError(t, r.Run(t.Context(), leaving))

	assert.Len(t, c.nodes[address(1)].members, 4)
	assert.False(t, hasNode(t, c, "node-5"))
}

func TestRetireWaitsForACluster(t *testing.T) {
	t.Parallel()

	d := described(3, 1)
	c := healthy(d)
	c.nodes[address(2)].stage = "booting"
	stays, leaving := without(d, 3)

	err := retiring(c, stays).Run(t.Context(), leaving)

	assert.ErrorContains(t, err, "retiring node node-4 (10.0.0.4): before node node-4 (10.0.0.4) goes down: ")
	assert.Empty(t, c.left, "a cluster that is not well loses nobody")
}

func TestRetireGoesOnWithWhoWasAskedToLeave(t *testing.T) {
	t.Parallel()

	for name, gone := range map[string]int{"a control plane": 4, "a worker": 5} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			d := described(5, 1)
			c := healthy(d)
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

	d := described(3, 1)
	c := healthy(d)
	stays, leaving := without(d, 3)
	r := retiring(c, stays)
	r.Report = func(line string) {
		if strings.HasSuffix(line, "leaves the cluster") {
			c.nodes[address(4)].silent = true
		}
	}

	require.Error(t, r.Run(t.Context(), leaving))

	assert.ErrorContains(t, retiring(c, stays).Run(t.Context(), leaving), "it does not answer",
		"it was never asked, so its silence is not expected")
}

func TestRetireTakesADeadMemberOutBeforeAnotherCanJoin(t *testing.T) {
	t.Parallel()

	d := described(4, 0)
	c := healthy(d)
	c.nodes[address(3)].silent = true
	// The fourth joins in the same run; etcd lets nobody in beside a dead member.
	joiner := c.nodes[address(4)]
	joiner.stage = "booting"
	stays, leaving := without(d, 2)
	require.EqualError(t, retiring(c, stays).Run(t.Context(), leaving), "retiring node node-3 (10.0.0.3): it does not answer: "+
		"connection refused\n  to remove it as it is, name it in lifecycle.force", "at once: nobody waits for the one that joins")

	r := retiring(c, stays)
	r.Force = []string{"node-3"}
	r.Report = func(line string) {
		if strings.HasSuffix(line, "taken out of etcd by force") {
			joiner.stage = "running"
		}
	}

	require.NoError(t, r.Run(t.Context(), leaving))

	assert.Equal(t, []string{address(3)}, c.left)
	assert.False(t, hasNode(t, c, "node-3"))
}
