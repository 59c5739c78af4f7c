// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package rollout_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/talos-proxmox/talos-proxmox/internal/cluster/clustertest"
	"github.com/talos-proxmox/talos-proxmox/internal/rollout"
)

func TestForcedNodesThatLiveAreWarnedOf(t *testing.T) {
	t.Parallel()

	d := clustertest.Describe(3, 0)
	c := clustertest.Healthy(d)
	c.Nodes[clustertest.Address(2)].Unreachable = true
	var said []string
	rollout.WarnForced(t.Context(), c, d, []string{"node-1", "node-2", "gone"}, looking(c, d).Poll, func(s string) { said = append(said, s) })
	assert.Equal(t, []string{"lifecycle.force names node-1, which answers: take the name out, or the node is given up when it is silent " +
		"for a moment"}, said)
}
