// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package tests_test

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

// edit runs another up with a stack file that differs.
func (r *running) edit(file string) result {
	r.t.Helper()
	r.file = file

	return r.must("pulumi", "up", "--stack", r.stack, "--config-file", file, "--yes", "--skip-preview", "--non-interactive")
}

// rebooting is an edit that Talos reboots a node for: it takes udev rules at boot only.
var rebooting = []string{
	"\n  talos-proxmox:kubernetes:", "\n    patches: {all: [{inline: {machine: {udev: {rules: ['SUBSYSTEM==\"block\"']}}}}]}\n  talos-proxmox:kubernetes:",
}

// TestAClusterLives upgrades Talos by an edit, gives every machine more memory in the same edit as a
// configuration that reboots it, and takes the cluster to one node and back, inside plain ups and never
// with two nodes down.
func TestAClusterLives(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	dev := s.up("dev", s.stackFile("Pulumi.dev.yaml"))

	started := time.Now()
	newer := []string{"version: v1.12.4", "version: v1.12.5"}
	upgraded := dev.edit(s.stackFile("Pulumi.dev.yaml", newer...))
	for _, node := range []string{"ctrl-00", "ctrl-01", "ctrl-02"} {
		kept := keptLines(upgraded.all(), node)
		assert.NotEmpty(t, kept, node)
		assert.LessOrEqual(t, len(kept), 3, "what stays of a node's upgrade: %q", kept)
	}
	for _, n := range s.status().Nodes {
		assert.Equalf(t, "v1.12.5", n.Talos, "%s was upgraded", n.Hostname)
		assert.Equal(t, "running", n.Stage)
	}
	s.passesTheGate(started, 1)
	s.down(started, "10.200.5.1", "10.200.5.2", "10.200.5.3")
	s.inOrder(started, "talos.upgrade", "node/10.200.5.1", "node/10.200.5.2", "node/10.200.5.3")

	started = time.Now()
	larger := append(slices.Clone(newer), "memory: 2048", "memory: 3072", rebooting[0], rebooting[1])
	dev.edit(s.stackFile("Pulumi.dev.yaml", larger...))
	s.passesTheGate(started, 1)
	s.down(started, "10.200.5.1", "10.200.5.2", "10.200.5.3")
	assert.Empty(t, s.trace(started).of("talos.upgrade"), "nothing is upgraded again")
	assert.ElementsMatch(t, []string{"node/10.200.5.1", "node/10.200.5.2", "node/10.200.5.3"},
		s.trace(started).of("talos.reboot").objects(), "the configuration rebooted every node too")
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
	assert.Empty(t, s.trace(started).of("talos.bootstrap"), "nothing is bootstrapped twice")
	dev.isSettled()

	refused := s.try("pulumi", "preview", "--stack", "dev", "--config-file",
		s.stackFile("Pulumi.dev.yaml", append(slices.Clone(larger), "version: v1.35.0", "version: v1.34.0")...), "--non-interactive")
	assert.NotZero(t, refused.code, "a step that Kubernetes does not take is refused at preview")
	assert.Contains(t, refused.all(), "Kubernetes v1.35.0 cannot go back to v1.34.0")
}
