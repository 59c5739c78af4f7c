// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package operations_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/talos-proxmox/talos-proxmox/internal/operations"
)

func TestSayWhere(t *testing.T) {
	t.Parallel()

	for name, test := range map[string]struct {
		change func(*testing.T, *cluster)
		want   []string
	}{
		"all alike": {func(*testing.T, *cluster) {}, nil},
		"in the middle of an upgrade": {
			func(t *testing.T, c *cluster) {
				t.Helper()
				c.nodes[address(1)].boot("plain:v1.12.5")
				c.nodes[address(2)].silent = true
				c.nodes[address(3)].stage, c.nodes[address(3)].unmet = "booting", []string{"services: etcd not healthy"}
				_, err := c.kubernetes.CoreV1().Nodes().Patch(t.Context(), "node-4", "application/strategic-merge-patch+json",
					[]byte(`{"metadata":{"annotations":{"talos-proxmox/leaving":"true"}},"spec":{"unschedulable":true}}`), metav1.PatchOptions{})
				require.NoError(t, err)
			},
			[]string{
				`cluster "test" is not all alike:`,
				"  node-1 runs Talos v1.12.5 (plain)",
				"  node-2 does not answer: connection refused",
				"  node-3 runs Talos v1.12.4 (plain), is booting, waits for services: etcd not healthy",
				"  node-4 runs Talos v1.12.4 (plain), takes no pods, was asked to leave",
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			d := described(3, 1)
			c := healthy(d)
			test.change(t, c)
			var lines []string
			operations.SayWhere(t.Context(), c, d, operations.Patience{Call: time.Second}, func(line string) { lines = append(lines, line) })
			assert.Equal(t, test.want, lines)
		})
	}
}
