// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package tests_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestACopiedProgramRefusesAndRetires edits clusters of somebody else's program, which is the example's with other
// nodes: it refuses what a stack file's program refuses, and a node that goes leaves etcd before its VM does.
func TestACopiedProgramRefusesAndRetires(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	example := filepath.Join(s.root, "examples", "own-program")
	s.copyProject(example, s.buildCopyOf(example, filepath.Join("testdata", "programs", "own", "describe.go")))
	s.create("own")
	nodes := func(cluster, host string, numbers ...int) {
		t.Helper()
		all := []any{}
		for _, n := range numbers {
			all = append(all, map[string]any{
				"name": fmt.Sprintf("%s-%d", cluster, n), "role": "controlplane", "host": host, "allowSharedHost": true, "vmId": 9100 + n,
				"networks": map[string]any{"lan": map[string]any{
					"bridge": "vmbr0", "address": fmt.Sprintf("10.77.0.%d/24", n), "gateway": "10.77.0.254",
				}},
			})
		}
		text, err := json.Marshal(all)
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(filepath.Join(s.project, cluster+".json"), text, 0o600))
	}
	up := []string{"pulumi", "up", "--stack", "own", "--yes", "--skip-preview", "--non-interactive"}
	nodes("east", "host3", 11, 12, 13)
	nodes("west", "host3", 21)
	s.must(up...)

	refused := func(problem string) {
		t.Helper()
		started := time.Now()
		r := s.try(up...)
		assert.NotZero(t, r.code)
		assert.Contains(t, r.all(), problem)
		assert.Empty(t, s.trace(started).of("pve.qmcreate", "pve.qmdestroy", "talos.reset", "talos.apply"))
	}
	nodes("west", "host3", 21, 22)
	refused("2 control planes bear no more failures than 1")
	nodes("west", "host4", 21)
	refused(`node "west-21": the edit is refused: 1 problem`)
	nodes("west", "host3", 21)

	started := time.Now()
	nodes("east", "host3", 11)
	s.must(up...)
	s.hasVMs("east-11", "west-21")
	seen := s.trace(started)
	left, destroyed := seen.of("talos.reset"), seen.of("pve.qmdestroy")
	assert.ElementsMatch(t, []string{"node/10.77.0.12", "node/10.77.0.13"}, left.objects())
	require.Len(t, destroyed, 2)
	for _, leaving := range left {
		assert.True(t, leaving.End.Before(destroyed[0].Start), "%s left before a VM was destroyed", leaving.Object)
	}
	assert.Empty(t, seen.gateProblems(1))
	s.must("pulumi", "preview", "--stack", "own", "--expect-no-changes", "--non-interactive")
	s.must("pulumi", "destroy", "--stack", "own", "--yes", "--skip-preview", "--non-interactive")
	assert.Empty(t, s.status().VMs)
}

// buildCopyOf compiles a copy of a program of the repository in which one file is another.
func (s *site) buildCopyOf(program, replacement string) string {
	s.t.Helper()
	dir := s.t.TempDir()
	require.NoError(s.t, os.CopyFS(dir, os.DirFS(program)))
	text, err := os.ReadFile(replacement)
	require.NoError(s.t, err)
	require.FileExists(s.t, filepath.Join(dir, filepath.Base(replacement)))
	require.NoError(s.t, os.WriteFile(filepath.Join(dir, filepath.Base(replacement)), text, 0o600))

	return s.buildAgainstTheRepository(dir)
}
