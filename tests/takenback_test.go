// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package tests_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestAnEditIsTakenBackHalfWay kills an upgrade of Kubernetes, and then one of Talos, when one node has
// the new version, and puts the old one back: the state has it already, the nodes get it again.
func TestAnEditIsTakenBackHalfWay(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	small := s.up("small", s.small())
	tpx := s.build("cmd/tpx")
	killed := func(op, from, to string) {
		r := s.lab("fault", "add", "kill", "op="+op, "nth=2")
		require.Zero(t, r.code, r.all())
		r = s.try("pulumi", "up", "--stack", "small", "--config-file", s.small(from, to), "--yes", "--skip-preview", "--non-interactive")
		require.Equal(t, 137, r.code, r.all())
		s.unlock("small")
	}

	killed("talos.apply", "version: v1.35.0", "version: v1.35.1")
	between := s.try(tpx, "drift", "small")
	require.Equal(t, 1, between.code, between.all())
	assert.Contains(t, between.stdout, "cp-1 (10.30.0.1): configuration: cluster.apiServer.image is ")
	small.edit(s.small())
	s.must(tpx, "drift", "small")
	small.isSettled()

	killed("talos.upgrade", "version: v1.12.4", "version: v1.12.5")
	require.Equal(t, 1, s.try(tpx, "drift", "small").code)
	small.edit(s.small())
	s.must(tpx, "drift", "small")
	for _, n := range s.status().Nodes {
		assert.Equalf(t, "v1.12.4", n.Talos, "%s went back", n.Hostname)
	}
	small.isSettled()
}
