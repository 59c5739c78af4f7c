// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package tests_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

// TestDiskImageBoots brings a node up from a disk image, which the provider imports over SSH: the VM has
// no CD drive, and Talos is on its disk before it has a configuration.
func TestDiskImageBoots(t *testing.T) {
	t.Parallel()
	newSite(t).bootsADiskImage()
}

// TestDiskImageBootsWithGenuinePlugins does the same with the providers' own plugins.
func TestDiskImageBootsWithGenuinePlugins(t *testing.T) {
	heavy(t)
	genuine(t)
	t.Parallel()

	s := newSite(t)
	s.providers = "real"
	s.bootsADiskImage()
}

func (s *site) bootsADiskImage() {
	s.t.Helper()

	const other = "    cp-%: {role: controlplane, vmId: 30%, networks: {lan: {address: 10.30.0.%}}}\n"
	file := s.small(
		"      pve1: {datastore: local-lvm}\n", "      pve1: {datastore: local-lvm}\n    ssh: {username: root}\n",
		"  talos-proxmox:cluster:\n", "  talos-proxmox:image: {boot: disk, extensions: [qemu-guest-agent]}\n  talos-proxmox:cluster:\n",
		strings.ReplaceAll(other, "%", "2"), "", strings.ReplaceAll(other, "%", "3"), "")
	s.create("small")
	s.must("pulumi", "config", "set", "--secret", "--path", "talos-proxmox:proxmox.ssh.password", "lab", "--stack", "small", "--config-file", file)

	started := time.Now()
	up := s.up("small", file)
	up.hasNodes("cp-1")
	imports := s.trace(started).of("qm.importdisk")
	if assert.Len(s.t, imports, 1) {
		assert.Empty(s.t, imports[0].Error)
	}
	up.isSettled()
	up.destroy()
	assert.Empty(s.t, s.status().VMs)
}
