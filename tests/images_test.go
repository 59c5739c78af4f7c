// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package tests_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestImagesGoAfterTheRollOut changes the image of a running node. While the roll-out fails the old
// image stays; when every node runs the new one it goes, and nothing names it any more.
func TestImagesGoAfterTheRollOut(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	dev := s.up("dev", s.alone())
	old := s.shape("dev").Files
	require.Len(t, old, 1)

	file := s.alone()
	s.replace(file, "[siderolabs/qemu-guest-agent]", "[siderolabs/qemu-guest-agent, siderolabs/iscsi-tools]")
	broken := s.lab("fault", "add", "api-error", "api=talos", "call=Upgrade", "message=not today")
	require.Zero(t, broken.code, broken.all())
	failed := s.try("pulumi", "up", "--stack", "dev", "--config-file", file, "--yes", "--skip-preview", "--non-interactive")
	assert.NotZero(t, failed.code)
	assert.Contains(t, failed.all(), "not today")
	assert.Subset(t, s.shape("dev").Files, old, "a node still needs it")
	mended := s.lab("fault", "clear")
	require.Zero(t, mended.code, mended.all())

	started := time.Now()
	dev.edit(file)
	upgrades, removals := s.trace(started).of("talos.upgrade"), s.trace(started).of("pve.imgdel")
	require.Len(t, upgrades, 1)
	require.Len(t, removals, 1)
	assert.True(t, removals[0].Start.After(upgrades[0].End), "the image went before its node was upgraded")
	now := s.shape("dev").Files
	require.Len(t, now, 1)
	assert.NotEqual(t, old, now)
	_, name, _ := strings.Cut(old[0], "/")
	assert.NotContains(t, s.must("pulumi", "stack", "export", "--stack", "dev").stdout, name, "a VM that names it could not start again")
	dev.isSettled()
}
