// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package tests_test

import (
	"net/http"
	"net/url"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

// TestWhatWasChangedByHandIsShown changes one machine in Proxmox VE itself. A refresh names exactly that,
// and an up puts it back, through the gate.
func TestWhatWasChangedByHandIsShown(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	c := s.up("small", s.small())

	s.byHand(http.MethodPut, "/nodes/pve1/qemu/302/config", url.Values{"memory": {"4096"}, "cores": {"3"}})

	args := []string{"--stack", "small", "--config-file", c.file, "--diff", "--non-interactive"}
	shown := s.must(append([]string{"pulumi", "refresh", "--preview-only"}, args...)...).all()
	assert.Contains(t, shown, "small-cp-2-vm")
	assert.NotContains(t, shown, "small-cp-1-vm")
	assert.NotContains(t, shown, "small-cp-3-vm")
	assert.Regexp(t, `~ cores *: 2 => 3`, shown)
	assert.Regexp(t, `~ dedicated *: 2048 => 4096`, shown)
	t.Log(shown)

	shown = s.must(append([]string{"pulumi", "preview", "--refresh"}, args...)...).all()
	assert.Contains(t, shown, "small-cp-2-vm")
	assert.Regexp(t, `~ cores *: 2 => 3`, shown)
	assert.Regexp(t, `~ dedicated *: 2048 => 4096`, shown)
	assert.Contains(t, shown, "~ 1 to update", "the next up puts it back")

	started := time.Now()
	s.must("pulumi", "up", "--refresh", "--stack", "small", "--config-file", c.file, "--yes", "--skip-preview", "--non-interactive")
	s.passesTheGate(started, 1)
	s.untouched(started, "vm/301", "vm/303", "node/10.30.0.1", "node/10.30.0.3")
	c.isSettled()
}
