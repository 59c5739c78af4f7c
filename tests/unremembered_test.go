// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package tests_test

import (
	"encoding/json"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestAMemberOfAFirstUpThatFailedLeavesFirst has the first up of three control planes fail in the third one, when the
// second is in etcd already. The operator goes on with one: the second leaves etcd before its VM goes.
func TestAMemberOfAFirstUpThatFailedLeavesFirst(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.create("small")
	up := func(file string) result {
		return s.try("pulumi", "up", "--stack", "small", "--config-file", file, "--yes", "--skip-preview", "--non-interactive")
	}
	short := []string{"applyTimeout: 2m", "applyTimeout: 20s"}
	r := s.lab("fault", "add", "api-error", "api=talos", "node=cp-3", "call=ApplyConfiguration", "later=yes")
	require.Zero(t, r.code, r.all())
	r = up(s.of([]string{"cp-1", "cp-2", "cp-3"}, short...))
	require.NotZero(t, r.code)
	require.Len(t, s.status().Clusters, 1)

	r = up(s.of([]string{"cp-1"}, short...))
	require.Zero(t, r.code, r.all())
	assert.Contains(t, r.all(), "cp-2 has left")
	s.hasVMs("cp-1")
	require.Len(t, s.shape("small").Clusters, 1)
	assert.Contains(t, s.shape("small").Clusters[0], `"members":["cp-1"]`)
	assert.True(t, s.status().Clusters[0].Healthy)
}

// TestALivingVMThatTheStateForgotIsBroughtBack takes a VM out of the state. The next up leaves the machine alone and says
// how to bring it back, which the tool does: nothing goes down. It undoes what it did where the next up would replace a VM.
func TestALivingVMThatTheStateForgotIsBroughtBack(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	c := s.up("small", s.small())
	tpx := s.build("cmd/tpx")
	before := s.status()
	s.must("pulumi", "state", "delete", s.urn("small", "small-cp-2-vm"), "--target-dependents", "--yes", "--stack", "small")

	r := s.try("pulumi", "up", "--stack", "small", "--config-file", c.file, "--yes", "--skip-preview", "--non-interactive")
	assert.NotZero(t, r.code)
	assert.Contains(t, r.all(), "VM 302 on host pve1 is the living node cp-2 itself, which dropped out of the state")

	known := s.urns("small")
	rebuilt := s.small("  talos-proxmox:lifecycle:\n", "  talos-proxmox:lifecycle:\n    replace: {cp-1: 1}\n")
	undone := s.try(tpx, "adopt", "small", "--config-file", rebuilt)
	assert.NotZero(t, undone.code)
	assert.Contains(t, undone.all(), "up would replace or delete VMs: ")
	assert.Contains(t, undone.all(), "nothing is adopted, and the state is as it was")
	assert.Equal(t, known, s.urns("small"))
	assert.Equal(t, before, s.status())

	s.must(tpx, "adopt", "small", "--config-file", c.file)
	s.must("pulumi", "up", "--stack", "small", "--config-file", c.file, "--yes", "--skip-preview", "--non-interactive")
	assert.Equal(t, before, s.status())
	c.isSettled()
}

// TestALostStateTakesNoImageAway loses the state of a running cluster. The next up refuses to own the file that the VM boots
// from, so that a destroy after it leaves the file, and the VM starts again.
func TestALostStateTakesNoImageAway(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	c := s.up("small", s.small(alone()...))
	s.must("pulumi", "stack", "rm", "small", "--force", "--yes", "--preserve-config")
	s.create("small")

	c.refuses(c.file, "VM 301 (cp-1) on host pve1 has local:iso/talos-small-v1.12.4-", "this stack's state does not know that file",
		"Take the VMs over with cluster.adopted and `tpx adopt`")
	s.must("pulumi", "destroy", "--stack", "small", "--yes", "--skip-preview", "--non-interactive")
	s.power(301, "stop", "stopped")
	s.power(301, "start", "running")
	assert.Len(t, s.status().VMs, 1)
}

// urns returns what a stack's state knows.
func (s *site) urns(stack string) []string {
	s.t.Helper()
	var state struct {
		Deployment struct {
			Resources []struct {
				URN string `json:"urn"`
			} `json:"resources"`
		} `json:"deployment"`
	}
	require.NoError(s.t, json.Unmarshal([]byte(s.must("pulumi", "stack", "export", "--stack", stack).stdout), &state))
	var urns []string
	for _, r := range state.Deployment.Resources {
		urns = append(urns, r.URN)
	}
	slices.Sort(urns)

	return urns
}
