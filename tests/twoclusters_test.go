// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package tests_test

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestTwoClustersInOneProgram runs somebody else's program, which makes two clusters from the
// components alone: hook names are global to a program and must not meet.
func TestTwoClustersInOneProgram(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	program := filepath.Join("examples", "own-program")
	s.copyProject(filepath.Join(s.root, program), s.build(program))
	s.create("both")

	r := s.must("pulumi", "up", "--stack", "both", "--yes", "--skip-preview", "--non-interactive")
	assert.Contains(t, r.all(), `cluster "east" is healthy: 1 node`)
	assert.Contains(t, r.all(), `cluster "west" is healthy: 1 node`)

	st := s.status()
	require.Len(t, st.VMs, 2)
	require.Len(t, st.Clusters, 2)
	for _, c := range st.Clusters {
		assert.Truef(t, c.Healthy, "%s is healthy", c.Name)
	}

	s.must("pulumi", "preview", "--stack", "both", "--expect-no-changes", "--non-interactive")
	s.must("pulumi", "destroy", "--stack", "both", "--yes", "--skip-preview", "--non-interactive")
	assert.Empty(t, s.status().VMs)
}
