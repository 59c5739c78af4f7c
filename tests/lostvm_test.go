// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package tests_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestALostVMIsALostNode deletes a control plane's VM by hand. A refresh drops it from the state, so that the engine
// creates it: its node gets its configuration again, after its earlier etcd member and Node went. Then the cluster
// gets another name and a VM another id, which the plan refuses, and a node goes, which leaves etcd first.
func TestALostVMIsALostNode(t *testing.T) {
	t.Parallel()
	aLostVMIsALostNode(t, newSite(t))
}

func aLostVMIsALostNode(t *testing.T, s *site) {
	t.Helper()
	s.create("small")
	file := s.small()
	with := func(file string, command ...string) []string {
		return append(append([]string{"pulumi"}, command...), "--stack", "small", "--config-file", file, "--non-interactive")
	}
	s.must(with(file, "up", "--yes", "--skip-preview")...)

	s.power(302, "stop", "stopped")
	s.byHand(http.MethodDelete, "/nodes/pve1/qemu/302", nil)
	require.Eventually(t, func() bool { return len(s.status().VMs) == 2 }, time.Minute, 100*time.Millisecond)
	r := s.must(with(file, "up", "--refresh", "--yes", "--skip-preview")...)
	assert.Contains(t, r.all(), "cp-2 rejoins: its earlier etcd member is removed")
	require.Len(t, s.status().Clusters, 1)
	assert.True(t, s.status().Clusters[0].Healthy)
	s.must(with(file, "preview", "--expect-no-changes")...)

	for edit, refused := range map[[2]string]string{
		{"name: small", "name: other"}: "cluster.name: was small, is now other",
		{"vmId: 303", "vmId: 393"}:     "lifecycle.allowReplace: {cp-3: [vmId]}",
		{"cp-3: {role: controlplane, vmId: 303,", "cp-4: {role: controlplane, vmId: 304,"}: "has the address 10.30.0.3 of cp-3, which goes in the same run",
	} {
		r := s.try(with(s.small(edit[0], edit[1]), "preview")...)
		assert.NotZero(t, r.code)
		assert.Contains(t, r.all(), refused)
	}
}
