// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package tests_test

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestAnImageAloneTakesNoFileOver has a program with an image component alone ask for the file that a running cluster of
// another stack boots from. It is refused, so that a destroy leaves the file, and the VM starts again.
func TestAnImageAloneTakesNoFileOver(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.up("small", s.small(alone()...))
	s.copyProject(filepath.Join(s.root, "tests", "testdata", "programs", "image"), s.build("tests/testdata/programs/image"))
	s.create("image")
	set := func(key, value string) { s.must("pulumi", "config", "set", key, value, "--stack", "image") }
	up := func() result {
		return s.try("pulumi", "up", "--stack", "image", "--yes", "--skip-preview", "--non-interactive")
	}
	set("cluster", "small")
	for asks, problem := range map[string]string{
		"true":  "VM 301 (cp-1) on host pve1 has local:iso/talos-small-v1.12.4-",
		"false": "already exists",
	} {
		started := time.Now()
		set("asks", asks)
		r := up()
		assert.NotZero(t, r.code)
		assert.Contains(t, r.all(), problem)
		for _, e := range s.trace(started).of("pve.download", "pve.imgdel") {
			assert.NotEmptyf(t, e.Error, "%s did something", e.Op)
		}
	}
	s.must("pulumi", "destroy", "--stack", "image", "--yes", "--skip-preview", "--non-interactive")
	s.power(301, "stop", "stopped")
	s.power(301, "start", "running")

	set("cluster", "other")
	set("asks", "true")
	r := up()
	require.Zero(t, r.code, r.all())
	s.must("pulumi", "preview", "--stack", "image", "--expect-no-changes", "--non-interactive")
}
