// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package tests_test

import (
	"net/http"
	"net/url"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestAVMThatMovedByHandStays migrates a control plane's VM by hand where the stack moves none (migrate: false), and gives
// another one a TPM. The provider would replace both: delete them with their disks, and make others as the stack file says.
func TestAVMThatMovedByHandStays(t *testing.T) {
	t.Parallel()
	aVMThatMovedByHandStays(t, newSite(t))
}

// TestRealityWithGenuinePlugins asks the providers' own plugins what they do with VMs that moved or were lost.
func TestRealityWithGenuinePlugins(t *testing.T) {
	heavy(t)
	genuine(t)
	for name, test := range map[string]func(*testing.T, *site){
		"moved": aVMThatMovedByHandStays, "lost": aLostVMIsALostNode,
	} {
		t.Run(name, func(t *testing.T) {
			s := newSite(t)
			s.providers = "real"
			test(t, s)
		})
	}
}

func aVMThatMovedByHandStays(t *testing.T, s *site) {
	t.Helper()
	edits := []string{"pve1: {datastore: local-lvm}", "pve1: {datastore: local-lvm}\n      pve2: {datastore: local-lvm}", "host: pve1"}
	small := s.up("small", s.small(append(edits, "host: pve1\n      allowSharedHost: true\n      migrate: false")...))
	// A VM with an ISO in its drive does not move.
	file := s.small(append(edits, "host: pve1\n      allowSharedHost: true\n      migrate: false\n      cdRom: false")...)
	small.edit(file)

	started := time.Now()
	s.byHand(http.MethodPost, "/nodes/pve1/qemu/302/migrate", url.Values{"target": {"pve2"}, "online": {"1"}, "with-local-disks": {"1"}})
	host := func() string {
		for _, vm := range s.status().VMs {
			if vm.VMID == 302 {
				return vm.Host
			}
		}

		return ""
	}
	require.Eventually(t, func() bool { return host() == "pve2" }, time.Minute, 200*time.Millisecond)
	s.byHand(http.MethodPut, "/nodes/pve1/qemu/303/config", url.Values{"tpmstate0": {"local-lvm:1,version=v1.2"}})
	s.must("pulumi", "up", "--refresh", "--stack", "small", "--config-file", file, "--yes", "--skip-preview", "--non-interactive")
	assert.Equal(t, "pve2", host())
	assert.Empty(t, s.trace(started).of("pve.qmdestroy"))
	assert.Empty(t, s.trace(started).of("pve.qmcreate"))
	require.Len(t, s.status().Clusters, 1)
	assert.True(t, s.status().Clusters[0].Healthy)
}
