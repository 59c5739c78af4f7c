// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package rollout

import (
	"context"
	"fmt"
	"os/exec"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/talos-proxmox/talos-proxmox/internal/cluster"
	"github.com/talos-proxmox/talos-proxmox/internal/cluster/clustertest"
)

// hurried returns a lock of a run on the cluster that renews it often.
func hurried(run string, c *clustertest.Fake) *Lock {
	l := NewLock(run, func(context.Context) (cluster.Access, error) { return c, nil })
	l.renewal, l.timeout = 20*time.Millisecond, time.Minute

	return l
}

func TestTwoRunsNeverMakeTwoGates(t *testing.T) {
	t.Parallel()

	d := clustertest.Describe(3, 0)
	c := clustertest.Healthy(d)
	fine := func(context.Context, Others) error { return nil }
	one, other := NewGate(1).WithLock(hurried("stack one", c)), NewGate(1).WithLock(hurried("stack other", c))

	require.NoError(t, one.Enter(t.Context(), d.Members[0], fine))
	err := other.Enter(t.Context(), d.Members[1], fine)
	var locked *Locked
	require.ErrorAs(t, err, &locked)
	assert.Contains(t, locked.Holder, "stack one on ")
	require.ErrorContains(t, err, "another run is changing this cluster: stack one on ")

	require.NoError(t, one.Leave(t.Context(), d.Members[0], fine))
	require.NoError(t, NewGate(1).WithLock(hurried("stack other", c)).Enter(t.Context(), d.Members[1], fine))
}

func leaseOf(t *testing.T, c *clustertest.Fake, holder string) {
	t.Helper()
	now := metav1.NowMicro()
	_, err := c.API.CoordinationV1().Leases("kube-system").Create(t.Context(), &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Name: lockName},
		Spec:       coordinationv1.LeaseSpec{HolderIdentity: &holder, RenewTime: &now},
	}, metav1.CreateOptions{})
	require.NoError(t, err)
}

func TestLockOfARunThatWasKilledExpires(t *testing.T) {
	t.Parallel()

	c := clustertest.Healthy(clustertest.Describe(1, 0))
	leaseOf(t, c, "stack prod on a machine that is gone, process 1 (elsewhere/x)")
	l := hurried("stack prod", c)
	l.timeout = 100 * time.Millisecond
	require.NoError(t, l.acquire(t.Context()))
	l.release()
	_, err := c.API.CoordinationV1().Leases("kube-system").Get(t.Context(), lockName, metav1.GetOptions{})
	require.Error(t, err, "it is released")
}

// A process that was killed on this machine holds nothing any more: the next run need not wait.
func TestLockOfAnEndedProcessIsStaleAtOnce(t *testing.T) {
	t.Parallel()

	if processSpace() == "" {
		t.Skip("this system does not tell which process ids are its own")
	}
	cmd := exec.CommandContext(t.Context(), "true")
	require.NoError(t, cmd.Run())
	assert.True(t, ended(fmt.Sprintf("stack prod on here, process %d (%s/x)", cmd.Process.Pid, processSpace())))
	assert.False(t, ended(holderOf("stack prod")), "this process lives")
	assert.False(t, ended(fmt.Sprintf("stack prod on here, process %d (elsewhere/x)", cmd.Process.Pid)))
	assert.False(t, ended("somebody else"))
}
