// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package tests_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestAFleetOfClusters brings three clusters up with the example's one command. The stack file of one has a mistake:
// it is reported, and the others come up.
func TestAFleetOfClusters(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	fleet := filepath.Join(t.TempDir(), "fleet")
	build := exec.CommandContext(t.Context(), "go", "build", "-o", fleet, ".")
	build.Dir = filepath.Join(s.root, "examples", "fleet")
	out, err := build.CombinedOutput()
	require.NoErrorf(t, err, "%s", out)

	template, err := os.ReadFile(filepath.Join(s.root, "examples", "fleet", "clusters", "edge-01.yaml"))
	require.NoError(t, err)
	clusters := filepath.Join(t.TempDir(), "clusters")
	require.NoError(t, os.Mkdir(clusters, 0o700))
	for i := 1; i <= 3; i++ {
		text := strings.NewReplacer("edge-01", fmt.Sprintf("edge-0%d", i), "701", fmt.Sprintf("70%d", i),
			"10.70.0.1/", fmt.Sprintf("10.70.0.%d/", i)).Replace(string(template))
		if i == 2 {
			text = strings.ReplaceAll(text, "memory: 4096", "memroy: 4096")
		}
		require.NoError(t, os.WriteFile(filepath.Join(clusters, fmt.Sprintf("edge-0%d.yaml", i)), []byte(text), 0o600))
	}

	r := s.try(fleet, "-project", s.project, "-clusters", clusters, "-at-once", "2")
	assert.Equal(t, 1, r.code, r.all())
	assert.Contains(t, r.stderr, "1 of 3 clusters failed")
	assert.Contains(t, r.stdout, "nodes.edge-02.memroy")
	s.hasVMs("edge-01", "edge-03")

	gone := s.try(fleet, "-project", s.project, "-clusters", clusters, "-destroy")
	require.Zero(t, gone.code, gone.all())
	assert.Empty(t, s.status().VMs)
}
