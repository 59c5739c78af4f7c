// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package tests_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/talos-proxmox/talos-proxmox/internal/versions"
)

// genuine skips a test that needs plugins which are not installed: those that every stack uses, where none
// is named. Pulumi finds those that are in $PULUMI_HOME, which the lab leaves alone.
func genuine(t *testing.T, plugins ...[2]string) {
	t.Helper()

	home := os.Getenv("PULUMI_HOME")
	if home == "" {
		user, err := os.UserHomeDir()
		require.NoError(t, err)
		home = filepath.Join(user, ".pulumi")
	}
	if len(plugins) == 0 {
		plugins = [][2]string{
			{"proxmoxve", versions.ProxmoxPlugin}, {"talos", versions.TalosPlugin}, {"kubernetes", versions.KubernetesPlugin},
		}
	}
	for _, plugin := range plugins {
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

// TestDeployKeyWithTheGenuineCommandPlugin registers a key with a Gitea of the lab through the plugin that
// runs tpx, and takes it away again. A token that the host refuses fails the up that brings it.
func TestDeployKeyWithTheGenuineCommandPlugin(t *testing.T) {
	heavy(t)
	genuine(t, [2]string{"command", versions.CommandPlugin})
	t.Parallel()

	s := newSite(t)
	s.newRepository()
	file := s.gitOpsFile("git")
	s.providers = "command"
	up := s.up("git", file)
	keys := s.deployKeys()
	require.Len(t, keys, 1)
	assert.True(t, keys[0].ReadOnly)
	assert.Equal(t, keys[0].Key, up.plainOutput("deployKey"))
	up.isSettled()
	up.keepsSecrets()

	up.tokenEnds()
	up.destroy()
	assert.Empty(t, s.deployKeys())
}
