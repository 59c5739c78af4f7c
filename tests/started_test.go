// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package tests_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

// TestANodeThatWasOffIsAwaited has somebody stop a control plane's VM. The up that starts it ends well only when the node
// serves again.
func TestANodeThatWasOffIsAwaited(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	c := s.up("small", s.small())
	s.power(302, "stop", "stopped")

	c.must("pulumi", "up", "--stack", "small", "--config-file", c.file, "--refresh", "--yes", "--skip-preview", "--non-interactive")
	nodes := map[string]string{}
	for _, n := range s.status().Nodes {
		nodes[n.Hostname] = n.Stage
	}
	assert.Equal(t, map[string]string{"cp-1": "running", "cp-2": "running", "cp-3": "running"}, nodes)
	for _, cluster := range s.status().Clusters {
		assert.True(t, cluster.Healthy)
	}
	c.isSettled()
}
