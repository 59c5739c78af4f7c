// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package tests_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// event is an operation of the site's trace.
type event struct {
	Op     string    `json:"op"`
	Object string    `json:"object"`
	Start  time.Time `json:"start"`
	End    time.Time `json:"end"`
}

// events are the trace's operations of that kind since a moment, in order.
func (s *site) events(op string, since time.Time) []event {
	s.t.Helper()

	r := s.lab("trace", "--json")
	require.Zero(s.t, r.code, r.all())

	var found []event
	decoder := json.NewDecoder(strings.NewReader(r.stdout))
	for decoder.More() {
		var e event
		require.NoError(s.t, decoder.Decode(&e))
		if e.Op == op && e.Start.After(since) {
			found = append(found, e)
		}
	}
	slices.SortFunc(found, func(a, b event) int { return a.Start.Compare(b.Start) })

	return found
}

// neverTwoDown asserts that nodes went down, which ones, and that no two were down at once.
func (s *site) neverTwoDown(since time.Time, nodes int) {
	s.t.Helper()

	down := s.events("node.down", since)
	seen := map[string]bool{}
	for i, e := range down {
		seen[e.Object] = true
		if i > 0 {
			assert.Falsef(s.t, e.Start.Before(down[i-1].End), "%s went down while %s was", e.Object, down[i-1].Object)
		}
	}
	assert.Lenf(s.t, seen, nodes, "nodes that went down: %v", down)
}

// edit runs another up with a stack file that differs.
func (r *running) edit(file string) result {
	r.t.Helper()
	r.file = file

	return r.must("pulumi", "up", "--stack", r.stack, "--config-file", file, "--yes", "--skip-preview", "--non-interactive")
}

// TestAClusterLives upgrades Talos by an edit, gives every machine more memory, and takes the
// cluster to one node and back, inside plain ups and never with two nodes down.
func TestAClusterLives(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	dev := s.up("dev", s.stackFile("Pulumi.dev.yaml"))

	started := time.Now()
	newer := []string{"version: v1.12.4", "version: v1.12.5"}
	dev.edit(s.stackFile("Pulumi.dev.yaml", newer...))
	for _, n := range s.status().Nodes {
		assert.Equalf(t, "v1.12.5", n.Talos, "%s was upgraded", n.Hostname)
		assert.Equal(t, "running", n.Stage)
	}
	s.neverTwoDown(started, 3)
	assert.Len(t, s.events("talos.upgrade", started), 3)

	started = time.Now()
	larger := append(slices.Clone(newer), "memory: 2048", "memory: 3072")
	dev.edit(s.stackFile("Pulumi.dev.yaml", larger...))
	s.neverTwoDown(started, 3)
	assert.Empty(t, s.events("talos.upgrade", started), "nothing is upgraded again")
	dev.isSettled()

	started = time.Now()
	one := append(slices.Clone(larger),
		"    ctrl-00: {role: controlplane, vmId: 800, networks: {lan: {address: 10.200.5.1}}}\n", "",
		"    ctrl-01: {role: controlplane, vmId: 801, networks: {lan: {address: 10.200.5.2}}}\n", "")
	dev.edit(s.stackFile("Pulumi.dev.yaml", one...))
	dev.hasNodes("ctrl-02")
	assert.Len(t, s.status().VMs, 1)

	dev.edit(s.stackFile("Pulumi.dev.yaml", larger...))
	dev.hasNodes("ctrl-00", "ctrl-01", "ctrl-02")
	assert.Empty(t, s.events("talos.bootstrap", started), "nothing is bootstrapped twice")
	dev.isSettled()

	refused := s.try("pulumi", "preview", "--stack", "dev", "--config-file",
		s.stackFile("Pulumi.dev.yaml", append(slices.Clone(larger), "version: v1.35.0", "version: v1.34.0")...), "--non-interactive")
	assert.NotZero(t, refused.code, "a step that Kubernetes does not take is refused at preview")
	assert.Contains(t, refused.all(), "Kubernetes v1.35.0 cannot go back to v1.34.0")
}
