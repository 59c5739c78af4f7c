// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package tests_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// destroyLimit is how long the destruction of a small cluster takes at most, whatever state it is in: it
// asks Proxmox VE and nobody else.
const destroyLimit = 2 * time.Minute

// TestDestroyWhateverIsThere destroys a cluster that is half built, and one whose nodes are all dead.
func TestDestroyWhateverIsThere(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.create("small")

	s.killedBefore("talos.bootstrap", "small", s.small())
	s.unlock("small")
	s.destroys()

	// A run that is killed while Proxmox VE makes VMs leaves some that no state knows: up clears them away.
	s.killedBefore("pve.qmstart", "small", s.small())
	s.unlock("small")
	(&running{site: s, stack: "small"}).edit(s.small())
	for id := 301; id <= 303; id++ {
		s.power(id, "stop", "stopped")
	}
	s.destroys()
	assert.Empty(t, s.status().Clusters)
}

// destroys destroys the small stack, plainly, in bounded time, and all of it.
func (s *site) destroys() {
	s.t.Helper()

	started := time.Now()
	s.must("pulumi", "destroy", "--stack", "small", "--yes", "--skip-preview", "--non-interactive")
	assert.Less(s.t, time.Since(started), destroyLimit)
	assert.Empty(s.t, s.status().VMs, "no VM is left")
	found := s.shape("small")
	assert.Empty(s.t, found.Files, "no image is left")
	require.Empty(s.t, found.Resources, "nothing is left in the state")
}
