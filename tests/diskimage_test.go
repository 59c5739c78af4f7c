// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package tests_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

// TestDiskImageBoots brings a node up from a disk image, which the provider imports over SSH: the VM has
// no CD drive, and Talos is on its disk before it has a configuration.
func TestDiskImageBoots(t *testing.T) {
	t.Parallel()
	newSite(t).bootsDiskImages("cp-1")
}

// TestDiskImagesOfEveryFormatBoot does the same with a node for each format that Proxmox VE can import.
func TestDiskImagesOfEveryFormatBoot(t *testing.T) {
	heavy(t)
	t.Parallel()
	newSite(t).bootsDiskImages("cp-1", "cp-2", "cp-3")
}

// TestDiskImagesBootWithGenuinePlugins does so with the providers' own plugins.
func TestDiskImagesBootWithGenuinePlugins(t *testing.T) {
	heavy(t)
	genuine(t)
	t.Parallel()

	s := newSite(t)
	s.providers = "real"
	s.bootsDiskImages("cp-1", "cp-2", "cp-3")
}

// bootsDiskImages brings these nodes of the small cluster up: one from raw.zst, the others from raw.gz
// and qcow2.
func (s *site) bootsDiskImages(nodes ...string) {
	s.t.Helper()

	edits := []string{
		"      pve1: {datastore: local-lvm}\n", "      pve1: {datastore: local-lvm}\n    ssh: {username: root}\n",
		"  talos-proxmox:cluster:\n", "  talos-proxmox:image: {boot: disk, extensions: [qemu-guest-agent]}\n" +
			"  talos-proxmox:images: {packed: {diskFormat: raw.gz}, layered: {diskFormat: qcow2}}\n  talos-proxmox:cluster:\n",
	}
	for node, format := range map[string]string{"cp-2": "packed", "cp-3": "layered"} {
		n := strings.TrimPrefix(node, "cp-")
		line := strings.ReplaceAll("    cp-%: {role: controlplane, vmId: 30%, networks: {lan: {address: 10.30.0.%}}}\n", "%", n)
		with := strings.Replace(line, "{role", "{image: "+format+", role", 1)
		if !slices.Contains(nodes, node) {
			with = ""
		}
		edits = append(edits, line, with)
	}
	file := s.small(edits...)
	s.create("small")
	s.must("pulumi", "config", "set", "--secret", "--path", "talos-proxmox:proxmox.ssh.password", "lab", "--stack", "small", "--config-file", file)

	started := time.Now()
	up := s.up("small", file)
	up.hasNodes(nodes...)
	imports := s.trace(started).of("qm.importdisk")
	assert.Len(s.t, imports, len(nodes))
	for _, i := range imports {
		assert.Empty(s.t, i.Error)
	}
	up.isSettled()
	up.destroy()
	assert.Empty(s.t, s.status().VMs)
}
