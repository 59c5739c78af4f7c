// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package tests_test

import (
	"net/http"
	"net/url"
	"testing"

	"github.com/stretchr/testify/assert"
)

// TestWhatAProviderFailsAtIsToldBefore starts a VM by hand that the state has as off, and gives it a disk that the stack file
// does not have. The provider fails at both and notes them as done; the run says what to do before the provider is asked.
func TestWhatAProviderFailsAtIsToldBefore(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	c := s.up("small", s.small(alone()...))
	refresh := func() {
		s.must("pulumi", "refresh", "--target=**$proxmoxve:VM/**", "--stack", "small", "--config-file", c.file, "--yes", "--skip-preview",
			"--non-interactive")
	}
	upWithRefresh := func() {
		s.must("pulumi", "up", "--refresh", "--stack", "small", "--config-file", c.file, "--yes", "--skip-preview", "--non-interactive")
		c.hasNodes("cp-1")
		c.isSettled()
	}

	s.power(301, "stop", "stopped")
	refresh()
	s.power(301, "start", "running")
	for range 2 { // what was refused once is refused again: nothing is noted as done
		c.refuses(c.file, "node cp-1: its VM 301 is off in Pulumi's state and runs on host pve1: somebody started it since the last refresh",
			"run `pulumi up --refresh`")
	}
	upWithRefresh()

	s.byHand(http.MethodPut, "/nodes/pve1/qemu/301/config", url.Values{"scsi9": {"local-lvm:3"}})
	c.edit(c.file) // without a refresh nobody sees it
	refresh()
	preview := s.try("pulumi", "preview", "--stack", "small", "--config-file", c.file, "--non-interactive")
	assert.NotZero(t, preview.code)
	const told = "node cp-1: its VM 301 has the disk scsi9, which the stack file does not have, and the provider takes no disk out"
	assert.Contains(t, preview.all(), told)
	c.refuses(c.file, told, "qm set 301 --delete scsi9")
	s.byHand(http.MethodPut, "/nodes/pve1/qemu/301/config", url.Values{"delete": {"scsi9"}})
	upWithRefresh()
}
