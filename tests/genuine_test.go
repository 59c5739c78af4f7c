// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package tests_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// genuine skips a test that needs plugins which are not installed. Pulumi finds those that are in
// $PULUMI_HOME, which the lab leaves alone.
func genuine(t *testing.T) {
	t.Helper()

	home := os.Getenv("PULUMI_HOME")
	if home == "" {
		user, err := os.UserHomeDir()
		require.NoError(t, err)
		home = filepath.Join(user, ".pulumi")
	}
	for _, plugin := range [][2]string{{"proxmoxve", "6.18.1"}, {"talos", "0.7.1"}, {"kubernetes", "4.23.0"}} {
		binary := filepath.Join(home, "plugins", "resource-"+plugin[0]+"-v"+plugin[1], "pulumi-resource-"+plugin[0])
		if _, err := os.Stat(binary); err != nil {
			t.Skipf("skipped: plugin %s %s not installed in %s", plugin[0], plugin[1], home)
		}
	}
}

// TestDevWithGenuinePlugins brings the dev stack up with the providers' own plugins, unmodified: it
// settles, keeps its secrets, and goes again.
func TestDevWithGenuinePlugins(t *testing.T) {
	heavy(t)
	genuine(t)

	s := newSite(t)
	s.providers = "real"
	dev := s.up("dev", s.stackFile("Pulumi.dev.yaml"))
	dev.hasNodes("ctrl-00", "ctrl-01", "ctrl-02")
	dev.followsGit()
	dev.isSettled()
	dev.keepsSecrets()

	dev.destroy()
	st := s.status()
	assert.Empty(t, st.VMs)
	assert.Empty(t, st.Nodes)
}

// TestProdWithGenuinePlugins does the same with the prod stack: mirrors, Cilium, two networks, six nodes.
func TestProdWithGenuinePlugins(t *testing.T) {
	heavy(t)
	genuine(t)

	s := newSite(t)
	s.providers = "real"
	prod := s.up("prod", s.stackFile("Pulumi.prod.yaml"))
	prod.followsGit()
	prod.isSettled()
	prod.keepsSecrets()

	prod.destroy()
	assert.Empty(t, s.status().VMs)
}
