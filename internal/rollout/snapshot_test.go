// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package rollout_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/talos-proxmox/talos-proxmox/internal/cluster"
	"github.com/talos-proxmox/talos-proxmox/internal/cluster/clustertest"
	"github.com/talos-proxmox/talos-proxmox/internal/rollout"
)

func TestSnapshotsAreTakenOncePerRun(t *testing.T) {
	t.Parallel()

	d := clustertest.Describe(3, 0)
	c := clustertest.Healthy(d)
	c.Nodes[clustertest.Address(1)].Unreachable = true
	c.Nodes[clustertest.Address(2)].Snapshot = "everything"
	dir := filepath.Join(t.TempDir(), "snapshots")
	require.NoError(t, os.Mkdir(dir, 0o700))
	for _, name := range []string{
		"test-talos-v1.12.0-20250102T000000Z.snapshot", "test-kubernetes-v1.34.0-20250103T000000Z.snapshot",
		"test-2-talos-v1.12.0-20250101T000000Z.snapshot", "mine.snapshot",
	} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), nil, 0o600))
	}
	s := &rollout.Snapshots{Access: c, Cluster: d, Directory: dir, Keep: 2, Poll: cluster.PollOptions{Timeout: time.Second}}

	var lines []string
	report := func(line string) { lines = append(lines, line) }
	require.NoError(t, s.Take(t.Context(), "talos-v1.12.4", report))
	require.NoError(t, s.Take(t.Context(), "talos-v1.12.4", report))

	require.Len(t, lines, 1)
	taken, err := filepath.Glob(filepath.Join(dir, "test-talos-v1.12.4-*Z.snapshot"))
	require.NoError(t, err)
	require.Len(t, taken, 1)
	assert.Equal(t, "etcd is saved in "+taken[0], lines[0])
	content, err := os.ReadFile(taken[0])
	require.NoError(t, err)
	assert.Equal(t, "everything", string(content))
	info, err := os.Stat(taken[0])
	require.NoError(t, err)
	assert.Equal(t, os.FileMode(0o600), info.Mode())

	left, err := os.ReadDir(dir)
	require.NoError(t, err)
	names := make([]string, 0, len(left))
	for _, f := range left {
		names = append(names, f.Name())
	}
	assert.ElementsMatch(t, []string{
		filepath.Base(taken[0]), "test-kubernetes-v1.34.0-20250103T000000Z.snapshot",
		"test-2-talos-v1.12.0-20250101T000000Z.snapshot", "mine.snapshot",
	}, names, "of this cluster the two newest stay; nothing else is touched")
}

func TestSnapshotThatNobodyGives(t *testing.T) {
	t.Parallel()

	d := clustertest.Describe(1, 0)
	c := clustertest.Healthy(d)
	dir := t.TempDir()
	s := &rollout.Snapshots{Access: c, Cluster: d, Directory: dir, Poll: cluster.PollOptions{Timeout: time.Second}}

	err := s.Take(t.Context(), "talos-v1.12.4", func(string) {})
	require.EqualError(t, err, "taking a snapshot of etcd: node-1 (10.0.0.1): it is empty")
	left, err := os.ReadDir(dir)
	require.NoError(t, err)
	assert.Empty(t, left, "nothing half is left")

	u, _ := upgrading(c, d)
	u.Snapshots = s
	require.ErrorContains(t, u.Run(t.Context(), d.Members[0], newer), "it is empty\n  this node was not changed")
	assert.Empty(t, c.Upgraded)
}
