// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package rollout_test

import (
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/talos-proxmox/talos-proxmox/internal/cluster"
	"github.com/talos-proxmox/talos-proxmox/internal/cluster/clustertest"
	"github.com/talos-proxmox/talos-proxmox/internal/rollout"
	"github.com/talos-proxmox/talos-proxmox/internal/talosapi"
)

// newer is the image that tests upgrade to.
var newer = cluster.Image{Version: "v1.12.5", Schematic: "plain", Installer: "plain:v1.12.5"}

// upgrading returns an upgrade in a fake cluster, and the lines that it reports.
func upgrading(c *clustertest.Fake, d cluster.Cluster) (rollout.Upgrade, func() []string) {
	var mu sync.Mutex
	var lines []string

	return rollout.Upgrade{
			Access: c, Cluster: d, Gate: rollout.NewGate(1),
			Drain: rollout.Drain{Timeout: 50 * time.Millisecond, Interval: time.Millisecond},
			Poll:  cluster.PollOptions{Timeout: 400 * time.Millisecond, Interval: time.Millisecond, Call: time.Second},
			Report: func(line string) {
				mu.Lock()
				defer mu.Unlock()
				lines = append(lines, line)
			},
		}, func() []string {
			mu.Lock()
			defer mu.Unlock()

			return lines
		}
}

func unschedulable(t *testing.T, c *clustertest.Fake, node string) bool {
	t.Helper()
	n, err := c.API.CoreV1().Nodes().Get(t.Context(), node, metav1.GetOptions{})
	require.NoError(t, err)

	return n.Spec.Unschedulable
}

func TestUpgradeTakesOneNodeToAnotherImage(t *testing.T) {
	t.Parallel()

	d := clustertest.Describe(3, 1)
	c := clustertest.Healthy(d)
	u, lines := upgrading(c, d)

	require.NoError(t, u.Run(t.Context(), d.Members[1], newer))

	assert.Equal(t, []string{"10.0.0.2 plain:v1.12.5"}, c.Upgraded)
	assert.Equal(t, "v1.12.5", c.Nodes[clustertest.Address(2)].Version)
	assert.False(t, unschedulable(t, c, "node-2"), "pods may come again")
	assert.Equal(t, []string{"10.0.0.2 plain:v1.12.5"}, c.Pulled, "while it still works")
	assert.Equal(t, []string{
		"node-2 pulls plain:v1.12.5",
		`cluster "test" is healthy: 4 nodes`,
		"node-2 goes from Talos v1.12.4 (plain) to v1.12.5 (plain)",
		"node-2 installs plain:v1.12.5 and reboots",
		"node-2 is back with Talos v1.12.5 (plain)",
		`cluster "test" is healthy: 4 nodes`,
	}, lines())
}

func TestUpgradeOfTheSchematicAlone(t *testing.T) {
	t.Parallel()

	d := clustertest.Describe(1, 0)
	c := clustertest.Healthy(d)
	u, _ := upgrading(c, d)

	require.NoError(t, u.Run(t.Context(), d.Members[0],
		cluster.Image{Version: "v1.12.4", Schematic: "gpu", Installer: "gpu:v1.12.4"}))

	assert.Equal(t, "gpu", c.Nodes[clustertest.Address(1)].Schematic)
}

func TestUpgradeLeavesANodeAloneThatIsRight(t *testing.T) {
	t.Parallel()

	d := clustertest.Describe(1, 1)
	c := clustertest.Healthy(d)
	c.Nodes[clustertest.Address(2)].Version = "v1.12.5"
	// An earlier run was interrupted after the reboot.
	_, err := c.API.CoreV1().Nodes().Patch(t.Context(), "node-2", "application/strategic-merge-patch+json",
		[]byte(`{"spec":{"unschedulable":true}}`), metav1.PatchOptions{})
	require.NoError(t, err)
	u, lines := upgrading(c, d)

	require.NoError(t, u.Run(t.Context(), d.Members[1], newer))

	assert.Empty(t, c.Upgraded)
	assert.False(t, unschedulable(t, c, "node-2"))
	assert.Equal(t, []string{"node-2 runs Talos v1.12.5 (plain) already"}, lines())
}

func TestUpgradeRefusesToSkipVersions(t *testing.T) {
	t.Parallel()

	d := clustertest.Describe(1, 0)
	c := clustertest.Healthy(d)
	c.Nodes[clustertest.Address(1)].Version = "v1.9.5"
	u, _ := upgrading(c, d)

	err := u.Run(t.Context(), d.Members[0], newer)

	assert.ErrorContains(t, err, "upgrading node node-1 (10.0.0.1): Talos v1.9.5 cannot be upgraded to v1.12.5 in one step")
	assert.Empty(t, c.Upgraded)
}

func TestUpgradeStopsAtTheFirstNodeThatFails(t *testing.T) {
	t.Parallel()

	for name, test := range map[string]struct {
		prepare func(*clustertest.Fake)
		want    string
		asked   int
	}{
		"the cluster is not well before": {
			func(c *clustertest.Fake) { c.Nodes[clustertest.Address(3)].Stage = "booting" },
			"upgrading node node-1 (10.0.0.1): before node node-1 (10.0.0.1) goes down: cluster \"test\" is not healthy after 0s: " +
				"check \"every node has finished booting\" fails on node node-3 (10.0.0.3): the machine is in stage \"booting\"",
			0,
		},
		"Talos refuses": {
			func(c *clustertest.Fake) {
				c.Nodes[clustertest.Address(1)].OnUpgrade = func(*clustertest.Node, string) error { return errors.New("etcd member is not healthy") }
			},
			"upgrading node node-1 (10.0.0.1): etcd member is not healthy",
			1,
		},
		"the node went back": {
			func(c *clustertest.Fake) {
				c.Nodes[clustertest.Address(1)].OnUpgrade = func(n *clustertest.Node, _ string) error { n.Reboot("plain:v1.12.4"); return nil }
			},
			"upgrading node node-1 (10.0.0.1): it came back with Talos v1.12.4 (plain) instead of v1.12.5 (plain): " +
				"it could not boot the new image and went back\n  look at: the console of node-1; talosctl -n 10.0.0.1 dmesg",
			1,
		},
		"the node stays away": {
			func(c *clustertest.Fake) {
				c.Nodes[clustertest.Address(1)].OnUpgrade = func(n *clustertest.Node, _ string) error { n.Unreachable = true; return nil }
			},
			"upgrading node node-1 (10.0.0.1): it is not back with Talos v1.12.5 (plain) after 400ms: connection refused\n" +
				"  look at: the console of node-1; when it is back, run `pulumi up` again",
			1,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			d := clustertest.Describe(3, 0)
			c := clustertest.Healthy(d)
			test.prepare(c)
			u, _ := upgrading(c, d)

			require.ErrorContains(t, u.Run(t.Context(), d.Members[0], newer), test.want)

			var closed *rollout.Closed
			require.ErrorAs(t, u.Run(t.Context(), d.Members[1], newer), &closed, "nobody else gets a turn")
			assert.Len(t, c.Upgraded, test.asked)
			if test.want == "upgrading node node-1 (10.0.0.1): etcd member is not healthy" {
				assert.False(t, unschedulable(t, c, "node-1"), "it did not go down: it is given back")
			}
		})
	}
}

func TestUpgradeWaitsForANodeThatAnEarlierRunLeft(t *testing.T) {
	t.Parallel()

	for name, test := range map[string]struct {
		left func(*clustertest.Node)
		want []string
	}{
		"while it installs": {
			func(n *clustertest.Node) { n.Stage = "upgrading" },
			[]string{`waiting for node-1: the machine is in stage "upgrading"`, "node-1 runs Talos v1.12.5 (plain) already"},
		},
		"while it reboots": {
			func(n *clustertest.Node) { n.Unreachable = true },
			[]string{"waiting for node-1: connection refused", "node-1 runs Talos v1.12.5 (plain) already"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			d := clustertest.Describe(1, 0)
			c := clustertest.Healthy(d)
			test.left(c.Nodes[clustertest.Address(1)])
			u, lines := upgrading(c, d)
			report := u.Report
			u.Report = func(line string) {
				report(line)
				c.Change(clustertest.Address(1), func(n *clustertest.Node) {
					if n.Version != newer.Version {
						n.Unreachable, n.Stage = false, "running"
						n.Reboot(newer.Installer)
					}
				})
			}

			require.NoError(t, u.Run(t.Context(), d.Members[0], newer))

			assert.Empty(t, c.Upgraded, "it is not asked twice")
			assert.Equal(t, test.want, lines())
		})
	}
}

func TestUpgradeOf113IsTakenBackBeforeTheReboot(t *testing.T) {
	t.Parallel()

	d := clustertest.Describe(1, 1)
	c := clustertest.Healthy(d)
	old := cluster.Image{Version: "v1.13.0", Schematic: "plain", Installer: "plain:v1.13.0"}
	for i := range d.Members {
		c.Nodes[clustertest.Address(i+1)].Version = old.Version
	}
	// The program ends after the node has installed and before it reboots.
	c.Nodes[clustertest.Address(2)].OnUpgrade = func(*clustertest.Node, string) error { return errors.New("connection lost") }
	u, _ := upgrading(c, d)
	require.ErrorContains(t, u.Run(t.Context(), d.Members[1],
		cluster.Image{Version: "v1.13.1", Schematic: "plain", Installer: "plain:v1.13.1"}), "connection lost")

	c.Nodes[clustertest.Address(2)].OnUpgrade = nil
	u, lines := upgrading(c, d)
	require.NoError(t, u.Run(t.Context(), d.Members[1], old))

	assert.Equal(t, []string{"10.0.0.2 plain:v1.13.1", "10.0.0.2 plain:v1.13.0"}, c.Upgraded,
		"what would boot next is written over")
	assert.Contains(t, lines(),
		"node-2 runs Talos v1.13.0 (plain), but an interrupted run installed plain:v1.13.1, which it would boot next")
	u, lines = upgrading(c, d)
	require.NoError(t, u.Run(t.Context(), d.Members[1], old))
	assert.Equal(t, []string{"node-2 runs Talos v1.13.0 (plain) already"}, lines())
}

func TestUpgradeOf113ThatTheInstallerRefuses(t *testing.T) {
	t.Parallel()

	d := clustertest.Describe(1, 1)
	c := clustertest.Healthy(d)
	c.Nodes[clustertest.Address(2)].Version = "v1.13.0"
	c.Nodes[clustertest.Address(2)].OnUpgrade = func(_ *clustertest.Node, image string) error {
		return &talosapi.NotInstalled{Image: image, Code: 1, Said: []string{"Error: pre-flight checks failed"}}
	}
	u, _ := upgrading(c, d)

	err := u.Run(t.Context(), d.Members[1],
		cluster.Image{Version: "v1.13.1", Schematic: "plain", Installer: "plain:v1.13.1"})

	require.EqualError(t, err, "upgrading node node-2 (10.0.0.2): "+
		"installing plain:v1.13.1 ended with exit code 1: Error: pre-flight checks failed\n"+
		"  the node goes on with what it runs")
	assert.False(t, unschedulable(t, c, "node-2"), "it did not go down: it is given back")
	node, err := c.API.CoreV1().Nodes().Get(t.Context(), "node-2", metav1.GetOptions{})
	require.NoError(t, err)
	assert.Empty(t, node.Annotations, "it boots next what it runs")
}
