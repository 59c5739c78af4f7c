// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package rollout_test

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/talos-proxmox/talos-proxmox/internal/cluster"
	"github.com/talos-proxmox/talos-proxmox/internal/cluster/clustertest"
	"github.com/talos-proxmox/talos-proxmox/internal/rollout"
)

// bootstrapped returns what a state says of the bootstrap.
func bootstrapped(yes bool) func(context.Context) (bool, error) {
	return func(context.Context) (bool, error) { return yes, nil }
}

func TestServing(t *testing.T) {
	t.Parallel()

	silent := func(c *clustertest.Fake, l *rollout.HealthChecker) {
		for _, m := range l.Cluster.Members {
			c.Nodes[m.Address].Unreachable = true
		}
	}
	for name, test := range map[string]struct {
		prepare func(*clustertest.Fake, *rollout.HealthChecker)
		want    bool
		err     string
	}{
		"one control plane answers": {
			prepare: func(c *clustertest.Fake, _ *rollout.HealthChecker) {
				c.Nodes[clustertest.Address(1)].Unreachable, c.Nodes[clustertest.Address(2)].Unreachable = true, true
			},
			want: true,
		},
		"nobody answers": {
			prepare: silent,
			err:     `cluster "test" was bootstrapped, and no control plane said within 1s that it serves etcd`,
		},
		"nobody answers, and the state cannot be read": {
			prepare: func(c *clustertest.Fake, l *rollout.HealthChecker) {
				silent(c, l)
				l.Bootstrapped = func(context.Context) (bool, error) { return false, errors.New("the backend is away") }
			},
			err: "name its control planes in lifecycle.force",
		},
		"nobody answers, and the cluster was never bootstrapped": {
			prepare: func(c *clustertest.Fake, l *rollout.HealthChecker) {
				silent(c, l)
				l.Bootstrapped = bootstrapped(false)
			},
		},
		"nobody answers, and all were given up": {
			prepare: func(c *clustertest.Fake, l *rollout.HealthChecker) {
				silent(c, l)
				l.Force = []string{"node-1", "node-2", "node-3"}
			},
		},
		"nobody answers, and one was given up": {
			prepare: func(c *clustertest.Fake, l *rollout.HealthChecker) {
				silent(c, l)
				l.Force = []string{"node-1"}
			},
			err: "node-2 (10.0.0.2): connection refused",
		},
		"a control plane that was given up serves": {
			prepare: func(c *clustertest.Fake, l *rollout.HealthChecker) { l.Force = []string{"node-1", "node-2", "node-3"} },
			want:    true,
		},
		"all wait for their first configuration": {
			prepare: func(c *clustertest.Fake, l *rollout.HealthChecker) {
				for _, m := range l.Cluster.Members {
					n := c.Nodes[m.Address]
					n.Blank, n.Members = true, nil
				}
			},
		},
		"etcd waits for its bootstrap": {
			prepare: func(c *clustertest.Fake, l *rollout.HealthChecker) {
				for _, m := range l.Cluster.Members {
					c.Nodes[m.Address].Members = nil
				}
			},
			err: "its etcd has no members",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := clustertest.Describe(3, 0)
			c := clustertest.Healthy(d)
			l := looking(c, d)
			test.prepare(c, &l)

			serving, err := l.Serving(t.Context())

			assert.Equal(t, test.want, serving)
			if test.err == "" {
				require.NoError(t, err)
			} else {
				require.ErrorContains(t, err, test.err)
			}
		})
	}
}

// An election lasts seconds, a slow disk makes calls late: nobody is dead for that.
func TestServingAsksAgain(t *testing.T) {
	t.Parallel()

	d := clustertest.Describe(3, 0)
	c := clustertest.Healthy(d)
	for _, n := range c.Nodes {
		n.Unreachable = true
	}
	l := looking(c, d)
	l.Poll = cluster.DefaultPollOptions(l.Poll.Timeout * 1000)
	l.Report = func(string) { c.Change(clustertest.Address(2), func(n *clustertest.Node) { n.Unreachable = false }) }

	serving, err := l.Serving(t.Context())
	require.NoError(t, err)
	assert.True(t, serving)
}

func TestApplyRefusesWhileEtcdDoesNotServe(t *testing.T) {
	t.Parallel()

	d := clustertest.Describe(3, 0)
	c := clustertest.Healthy(d)
	for _, n := range c.Nodes {
		n.Members = nil
	}
	var a rollout.Apply
	err := a.Before(t.Context(), around(rollout.NewGate(1), looking(c, d)), d.Members[0], []byte("reboot"))
	require.ErrorContains(t, err, "no control plane said within 1s that it serves etcd")
}

func TestKubernetesUpgradeRefusesWhenNobodyAnswers(t *testing.T) {
	t.Parallel()

	d := clustertest.Describe(3, 0)
	c := withKubernetes(t, d, "v1.34.1")
	for _, n := range c.Nodes {
		n.Unreachable = true
	}
	u, _ := upgradingKubernetes(c, d)
	require.ErrorContains(t, u.Run(t.Context(), "v1.34.2"), "no control plane said within")

	u.Bootstrapped = bootstrapped(false)
	require.NoError(t, u.Run(t.Context(), "v1.34.2"), "there is nothing to upgrade")
}
