// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package rollout_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/talos-proxmox/talos-proxmox/internal/cluster"
	"github.com/talos-proxmox/talos-proxmox/internal/cluster/clustertest"
	"github.com/talos-proxmox/talos-proxmox/internal/rollout"
)

// unborn returns a cluster whose control planes run, and whose etcd was never started.
func unborn(d cluster.Cluster) *clustertest.Fake {
	c := clustertest.Healthy(d)
	for _, n := range c.Nodes {
		n.Members = nil
		n.Services["etcd"] = cluster.Service{State: "Preparing"}
	}

	return c
}

func bootstrapping(c *clustertest.Fake, d cluster.Cluster) (rollout.Bootstrap, *[]string) {
	lines := &[]string{}

	return rollout.Bootstrap{
		Access: c, Cluster: d, Report: func(line string) { *lines = append(*lines, line) },
		Poll: cluster.PollOptions{Timeout: 200 * time.Millisecond, Interval: time.Millisecond, Call: time.Second},
	}, lines
}

func TestBootstrapStartsEtcdOnce(t *testing.T) {
	t.Parallel()

	d := clustertest.Describe(3, 0)
	c := unborn(d)
	b, lines := bootstrapping(c, d)

	require.NoError(t, b.Run(t.Context(), d.Members[0]))
	require.NoError(t, b.Run(t.Context(), d.Members[0]), "an interrupted run is repeated")

	assert.Equal(t, []string{clustertest.Address(1)}, c.Bootstrapped)
	assert.Equal(t, []string{
		"node-1 starts etcd: the cluster is bootstrapped", "etcd runs on node-1 already: nothing is bootstrapped",
	}, *lines)
}

func TestBootstrapOfANodeThatHasData(t *testing.T) {
	t.Parallel()

	d := clustertest.Describe(1, 0)
	c := unborn(d)
	c.BootstrapError = status.Error(codes.AlreadyExists, "etcd data directory is not empty")
	b, lines := bootstrapping(c, d)

	require.NoError(t, b.Run(t.Context(), d.Members[0]))
	assert.Equal(t, []string{"node-1 was bootstrapped by an earlier run"}, *lines)
}

func TestBootstrapNeverMakesASecondEtcd(t *testing.T) {
	t.Parallel()

	d := clustertest.Describe(3, 0)
	c := clustertest.Healthy(d)
	// The first control plane is a new machine; the state that said who was bootstrapped is lost.
	c.Nodes[clustertest.Address(1)].Members = nil
	c.Nodes[clustertest.Address(1)].Services["etcd"] = cluster.Service{State: "Preparing"}
	b, lines := bootstrapping(c, d)

	require.NoError(t, b.Run(t.Context(), d.Members[0]))
	assert.Empty(t, c.Bootstrapped)
	assert.Equal(t, []string{"etcd runs on node-2 already: nothing is bootstrapped"}, *lines)
}

func TestBootstrapIsBounded(t *testing.T) {
	t.Parallel()

	d := clustertest.Describe(1, 0)
	c := unborn(d)
	c.BootstrapError = status.Error(codes.FailedPrecondition, "time is not in sync yet")
	b, _ := bootstrapping(c, d)

	assert.EqualError(t, b.Run(t.Context(), d.Members[0]), "bootstrapping on node node-1 (10.0.0.1): not possible after 200ms: "+
		"rpc error: code = FailedPrecondition desc = time is not in sync yet\n  look at: the console of node-1; "+
		"is 10.0.0.1 its address, is port 50000 reachable from here?")
}
