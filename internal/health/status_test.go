// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package health_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/talos-proxmox/talos-proxmox/internal/cluster"
	"github.com/talos-proxmox/talos-proxmox/internal/cluster/clustertest"
	"github.com/talos-proxmox/talos-proxmox/internal/health"
)

func TestSayWhere(t *testing.T) {
	t.Parallel()

	for name, test := range map[string]struct {
		change func(*testing.T, *clustertest.Fake)
		want   []string
	}{
		"all alike": {func(*testing.T, *clustertest.Fake) {}, nil},
		"in the middle of an upgrade": {
			func(t *testing.T, c *clustertest.Fake) {
				t.Helper()
				c.Nodes[clustertest.Address(1)].Reboot("plain:v1.12.5")
				c.Nodes[clustertest.Address(2)].Unreachable = true
				c.Nodes[clustertest.Address(3)].Stage, c.Nodes[clustertest.Address(3)].Unmet = "booting", []string{"services: etcd not healthy"}
				_, err := c.API.CoreV1().Nodes().Patch(t.Context(), "node-4", "application/strategic-merge-patch+json",
					[]byte(`{"metadata":{"annotations":{"talos-proxmox.dev/leaving":"true"}},"spec":{"unschedulable":true}}`), metav1.PatchOptions{})
				require.NoError(t, err)
			},
			[]string{
				`cluster "test" has nodes in different states:`,
				"  node-1 runs Talos v1.12.5 (plain)",
				"  node-2 does not answer: connection refused",
				"  node-3 runs Talos v1.12.4 (plain), is booting, waits for services: etcd not healthy",
				"  node-4 runs Talos v1.12.4 (plain), takes no pods, was asked to leave",
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			d := clustertest.Describe(3, 1)
			c := clustertest.Healthy(d)
			test.change(t, c)
			var lines []string
			health.ReportStatus(t.Context(), c, d, cluster.PollOptions{Call: time.Second}, func(line string) { lines = append(lines, line) })
			assert.Equal(t, test.want, lines)
		})
	}
}
