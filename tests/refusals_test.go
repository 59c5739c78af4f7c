// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package tests_test

import (
	"encoding/base64"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestBadStackFileIsRefusedBeforeAnythingExists breaks a stack file in three ways at once and wants
// all of them told, each with its path, and nothing in the site or in the state.
func TestBadStackFileIsRefusedBeforeAnythingExists(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.create("dev")
	file := s.stackFile("Pulumi.dev.yaml",
		"vip: 10.200.5.10", "vpi: 10.200.5.10",
		"memory: 2048", "memory: plenty",
		"    name: talos-dev\n", "")

	r := s.try("pulumi", "up", "--stack", "dev", "--config-file", file, "--yes", "--skip-preview", "--non-interactive")
	assert.NotZero(t, r.code)
	assert.Contains(t, r.all(), `cluster.vpi`)
	assert.Contains(t, r.all(), `did you mean "vip"?`)
	assert.Contains(t, r.all(), `defaults.all.memory`)
	assert.Contains(t, r.all(), `cluster.name`)

	state := s.must("pulumi", "stack", "export", "--stack", "dev").stdout
	for _, kind := range []string{"proxmoxve:", "talos:", "talos-proxmox:components"} {
		assert.NotContains(t, state, kind, "nothing was registered")
	}
	assert.Empty(t, s.status().VMs)
}

// TestSecureValuesStaySecret puts secure values into structured keys, where the program meets them
// as plain text, and looks for the very values in everything that is kept or printed.
func TestSecureValuesStaySecret(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.create("dev")

	const inPatch, token = "value-kept-in-a-patch-4711", "glpat-kept-token-4713"
	file := s.stackFile("Pulumi.dev.yaml",
		"        type: ssh\n", "        type: token\n",
		"        knownHosts: gitea.example.com ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIBKbi6TI+As1UypzxqMHv/Exy7MuzNFJ5OZqVnvwn8bl", "",
		"ssh://git@gitea.example.com/lab/", "https://gitea.example.com/lab/")
	for path, value := range map[string]string{
		"talos-proxmox:gitops.git.auth.password":    token,
		"talos-proxmox:talos.patches.all[0].inline": "machine:\n  env:\n    KEPT: " + inPatch + "\n",
	} {
		s.must("pulumi", "config", "set", "--stack", "dev", "--config-file", file, "--secret", "--path", path, value)
	}
	content, err := os.ReadFile(file)
	require.NoError(t, err)
	require.NotContains(t, string(content), token, "pulumi encrypted the value")

	up := s.try("pulumi", "up", "--stack", "dev", "--config-file", file, "--yes", "--skip-preview", "--non-interactive")
	require.Zero(t, up.code, up.all())

	kept := s.must("pulumi", "stack", "export", "--stack", "dev", "--show-secrets").stdout
	places := map[string]string{
		"up":      up.all(),
		"export":  s.must("pulumi", "stack", "export", "--stack", "dev").stdout,
		"outputs": s.must("pulumi", "stack", "output", "--stack", "dev", "--json").stdout,
		"preview": s.must("pulumi", "preview", "--stack", "dev", "--config-file", file, "--diff", "--non-interactive").all(),
	}
	require.NoError(t, filepath.WalkDir(filepath.Join(s.dir, "pulumi-state"), func(path string, e os.DirEntry, err error) error {
		if err == nil && !e.IsDir() {
			var text []byte
			text, err = os.ReadFile(path)
			places[path] = string(text)
		}

		return err
	}))
	for _, value := range []string{inPatch, token} {
		encoded := base64.StdEncoding.EncodeToString([]byte(value)) // as a Kubernetes Secret holds it
		assert.Truef(t, strings.Contains(kept, value) || strings.Contains(kept, encoded), "%s was used", value)
		for place, text := range places {
			assert.Falsef(t, strings.Contains(text, value) || strings.Contains(text, encoded), "%s holds %s in plain text", place, value)
		}
	}
}

// TestSecureValueInAPlainSettingIsRefused: a value that ends up in plain settings cannot stay secret.
func TestSecureValueInAPlainSettingIsRefused(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.create("dev")
	file := s.stackFile("Pulumi.dev.yaml")
	s.must("pulumi", "config", "set", "--stack", "dev", "--config-file", file, "--secret", "--path",
		"talos-proxmox:defaults.controlPlane.description", "value-to-be-kept-4712")

	r := s.try("pulumi", "preview", "--stack", "dev", "--config-file", file, "--non-interactive")
	assert.NotZero(t, r.code)
	assert.Contains(t, r.all(), "must not be secure: only secrets and free text may")
	assert.Regexp(t, `defaults\.controlPlane\.description \(line \d+\)`, r.all())
	assert.NotContains(t, r.all(), "value-to-be-kept-4712")
}

// TestProblemsHaveTheLinesOfTheFileThatWasRead writes text where a block belongs, twice, in two files of the same values
// with other lines: the stack's own, and one outside the project that the command line names.
func TestProblemsHaveTheLinesOfTheFileThatWasRead(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.create("small")
	elsewhere := s.small("talos-proxmox:talos:\n    version: v1.12.4\n", "talos-proxmox:talos: v1.12.4\n",
		"talos-proxmox:kubernetes:\n    version: v1.35.0\n", "talos-proxmox:kubernetes: v1.35.0\n")
	text, err := os.ReadFile(elsewhere)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(s.project, "Pulumi.small.yaml"), append([]byte("#\n#\n"), text...), 0o600))
	relative, err := filepath.Rel(s.project, elsewhere)
	require.NoError(t, err)

	for _, c := range []struct {
		named             []string
		talos, kubernetes int
	}{
		{nil, 13, 14},
		{[]string{"--config-file", elsewhere}, 11, 12},
		{[]string{"--config-file=" + relative}, 11, 12},
	} {
		r := s.try(append([]string{"pulumi", "preview", "--stack", "small", "--non-interactive"}, c.named...)...)
		assert.NotZero(t, r.code)
		assert.Contains(t, r.all(), fmt.Sprintf("talos (line %d): must be a block of settings, not text", c.talos))
		assert.Contains(t, r.all(), fmt.Sprintf("kubernetes (line %d): must be a block of settings, not text", c.kubernetes))
	}
}
