// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package tests_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// urn returns the URN of the resource of that name in a stack.
func (s *site) urn(stack, name string) string {
	s.t.Helper()

	var state struct {
		Deployment struct {
			Resources []struct {
				URN string `json:"urn"`
			} `json:"resources"`
		} `json:"deployment"`
	}
	require.NoError(s.t, json.Unmarshal([]byte(s.must("pulumi", "stack", "export", "--stack", stack).stdout), &state))
	for _, r := range state.Deployment.Resources {
		if strings.HasSuffix(r.URN, "::"+name) {
			return r.URN
		}
	}
	require.Failf(s.t, "no such resource", "%s in stack %s", name, stack)

	return ""
}

// TestNodesAreReplaced replaces a control plane by the stack's key, which has it leave first, and another
// one by force, which the joining heals.
func TestNodesAreReplaced(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	small := s.up("small", s.small())
	replace := func(nodes string) string {
		return s.small("readyTimeout: 4m", "readyTimeout: 4m\n    replace: {"+nodes+"}")
	}

	two := s.try("pulumi", "preview", "--stack", "small", "--non-interactive", "--config-file", replace("cp-1: 1, cp-2: 1"))
	assert.NotZero(t, two.code)
	assert.Contains(t, two.all(), "the machines of cp-1, cp-2 would be replaced in one run: a control plane goes alone")

	started := time.Now()
	small.edit(replace("cp-1: 1"))
	small.hasNodes("cp-1", "cp-2", "cp-3")
	s.hasVMs("cp-1", "cp-2", "cp-3")
	seen := s.trace(started)
	assert.Equal(t, []string{"node/10.30.0.1"}, seen.of("etcd.leave").objects(), "it left etcd itself")
	assert.Equal(t, []string{"node/10.30.0.1"}, seen.of("talos.install").objects(), "one machine is new")
	assert.Empty(t, seen.of("talos.bootstrap"))
	assert.Empty(t, seen.of("etcd.remove"))
	s.untouched(started, "node/10.30.0.2", "node/10.30.0.3", "vm/302", "vm/303")
	s.passesTheGate(started, 1)
	small.isSettled()

	started = time.Now()
	forced := s.must("pulumi", "up", "--stack", "small", "--config-file", small.file, "--yes", "--skip-preview", "--non-interactive",
		"--replace", s.urn("small", "small-cp-3-vm"))
	assert.Contains(t, forced.all(), "cp-3 rejoins: its earlier etcd member is removed")
	assert.Contains(t, forced.all(), "cp-3 rejoins: its earlier Node is deleted")
	small.hasNodes("cp-1", "cp-2", "cp-3")
	assert.Len(t, s.trace(started).of("etcd.remove"), 1)
	small.isSettled()
	for _, c := range s.status().Clusters {
		assert.Truef(t, c.Healthy, "cluster %s", c.Name)
	}
}

// TestAControlPlaneIsSwapped puts a new control plane in the place of another one in one edit: there are
// four for a while, and never two.
func TestAControlPlaneIsSwapped(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	small := s.up("small", s.small())

	started := time.Now()
	small.edit(s.small("cp-3: {role: controlplane, vmId: 303, networks: {lan: {address: 10.30.0.3}}}",
		"cp-4: {role: controlplane, vmId: 304, networks: {lan: {address: 10.30.0.4}}}"))
	small.hasNodes("cp-1", "cp-2", "cp-4")
	s.hasVMs("cp-1", "cp-2", "cp-4")
	seen := s.trace(started)
	joined, left := seen.of("etcd.join"), seen.of("etcd.leave")
	require.NotEmpty(t, joined)
	require.Len(t, left, 1)
	assert.Equal(t, []string{"node/10.30.0.4"}, joined.objects())
	assert.True(t, joined[len(joined)-1].End.Before(left[0].Start), "the new one joined before the old one left")
	assert.Empty(t, seen.of("talos.bootstrap"))
	small.isSettled()
}

// TestARebuildGoesWithAnEditThatRebootsTheOthers rebuilds the last control plane and gives all of them more memory. The
// others wait at the gate until it is back, and it waits for nobody's configuration: it joins, and they reboot.
func TestARebuildGoesWithAnEditThatRebootsTheOthers(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	c := s.up("small", s.small())
	started := time.Now()
	c.edit(s.small("memory: 2048", "memory: 3072", "readyTimeout: 4m", "readyTimeout: 2m\n    replace: {cp-3: 1}"))
	c.hasNodes("cp-1", "cp-2", "cp-3")
	assert.Equal(t, []string{"node/10.30.0.3"}, s.trace(started).of("talos.install").objects())
	assert.Empty(t, s.trace(started).gateProblems(1))
	assert.True(t, s.status().Clusters[0].Healthy)
	c.isSettled()
}
