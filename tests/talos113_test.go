// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package tests_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// runsTalos asserts which Talos every node runs.
func (s *site) runsTalos(version string) {
	s.t.Helper()
	nodes := s.status().Nodes
	require.NotEmpty(s.t, nodes)
	for _, n := range nodes {
		assert.Equalf(s.t, version, n.Talos, "Talos of %s", n.Hostname)
		assert.Equalf(s.t, "running", n.Stage, "stage of %s", n.Hostname)
	}
}

// TestTalos113 makes a cluster of one node with Talos 1.13 and upgrades it: by the newer service, whose
// installer is heard, and whose refusal is told.
func TestTalos113(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	at := func(version string) string { return s.small(alone("version: v1.12.4", "version: "+version)...) }
	one := s.up("small", at("v1.13.0"))
	s.runsTalos("v1.13.0")
	one.isSettled()

	started := time.Now()
	r := one.edit(at("v1.13.1"))
	s.runsTalos("v1.13.1")
	assert.Contains(t, r.all(), "cp-1: installer: all preflight checks successful")
	upgrades := s.trace(started).of("talos.upgrade")
	require.Len(t, upgrades, 1)
	assert.Equal(t, "LifecycleService", upgrades[0].Attrs["service"])
	assert.Len(t, s.trace(started).of("talos.reboot"), 1)
	one.isSettled()
}

// TestAClusterGoesToTalos113AndBack rolls three nodes from 1.12 to 1.13, takes an upgrade back that was
// killed between the installation and the reboot, and goes back to 1.12.
func TestAClusterGoesToTalos113AndBack(t *testing.T) {
	heavy(t)
	t.Parallel()
	s := newSite(t)
	at := func(version string) string { return s.small("version: v1.12.4", "version: "+version) }
	small := s.up("small", s.small())
	rolls := func(version string) {
		started := time.Now()
		small.edit(at(version))
		s.runsTalos(version)
		s.passesTheGate(started, 1)
		s.inOrder(started, "talos.upgrade", "node/10.30.0.1", "node/10.30.0.2", "node/10.30.0.3")
		small.isSettled()
	}
	rolls("v1.13.0")

	r := s.lab("fault", "add", "kill", "op=talos.upgrade", "nth=1")
	require.Zero(t, r.code, r.all())
	r = s.try("pulumi", "up", "--stack", "small", "--config-file", at("v1.13.1"), "--yes", "--skip-preview", "--non-interactive")
	require.Equal(t, 137, r.code, r.all())
	s.unlock("small")
	started := time.Now()
	r = small.edit(at("v1.13.0"))
	assert.Contains(t, r.all(), "but an interrupted run installed factory.talos.dev/")
	s.runsTalos("v1.13.0")
	s.passesTheGate(started, 1)
	assert.Equal(t, []string{"node/10.30.0.1"}, s.trace(started).of("talos.upgrade").objects())

	rolls("v1.12.4")
}

// TestTalos113WithGenuinePlugins makes a cluster with Talos 1.13 through plugins that are older than it, with
// a document that they do not know.
func TestTalos113WithGenuinePlugins(t *testing.T) {
	heavy(t)
	genuine(t)
	t.Parallel()
	s := newSite(t)
	s.providers = "real"
	document := "patches: {all: [{inline: {apiVersion: v1alpha1, kind: EnvironmentConfig, variables: {GRPC_GO_LOG_SEVERITY_LEVEL: error}}}]}"
	at := func(version string) string {
		return s.small(alone("version: v1.12.4", "version: "+version+"\n    "+document)...)
	}
	one := s.up("small", at("v1.13.0"))
	s.runsTalos("v1.13.0")
	one.isSettled()
	one.edit(at("v1.13.1"))
	s.runsTalos("v1.13.1")
	one.isSettled()
	one.destroy()
	assert.Empty(t, s.status().VMs)
}
