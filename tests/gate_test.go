// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package tests_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestRefusedConfiguration has a patch that Talos would refuse on the node: it is refused in Talos's words with the
// setting that caused it, before anything exists.
func TestRefusedConfiguration(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.create("dev")
	file := s.alone("  talos-proxmox:lifecycle: {applyTimeout: 30m}\n")
	s.replace(file, "    version: v1.12.4\n", `    version: v1.12.4
    patches:
      all:
        - inline: {machine: {kubelet: {image: "ghcr.io/siderolabs/kubelet:v1.39.0"}}}
`)

	refused := s.try("pulumi", "up", "--stack", "dev", "--config-file", file, "--yes", "--skip-preview", "--non-interactive")
	assert.NotZero(t, refused.code)
	assert.Regexp(t, `talos\.patches\.all\[0\]\.inline\.machine\.kubelet\.image \(line \d+\): `, refused.all())
	assert.Contains(t, refused.all(), "kubelet image is not valid: version of Kubernetes 1.39.0 is too new to be used with Talos")
	assert.Empty(t, s.status().VMs, "nothing was made")

	s.must("pulumi", "up", "--stack", "dev", "--config-file", s.alone(), "--yes", "--skip-preview", "--non-interactive")
}

// replace edits a stack file in its place.
func (s *site) replace(file, old, now string) {
	s.t.Helper()

	content, err := os.ReadFile(file)
	require.NoError(s.t, err)
	require.Containsf(s.t, string(content), old, "%s has changed: adapt the test", file)
	require.NoError(s.t, os.WriteFile(file, []byte(strings.Replace(string(content), old, now, 1)), 0o600))
}

// TestClosedGate brings up a cluster whose nodes cannot get ready: the error names the first check that
// fails, the node and what was seen last, and says where the talosconfig is, which works. When the
// reason is gone the next run ends well.
func TestClosedGate(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.create("dev")
	talosconfig := filepath.Join(s.project, "kept", "talosconfig")
	file := func(skip string) string {
		return s.alone(`  talos-proxmox:cni: {name: none}
  talos-proxmox:lifecycle: {readyTimeout: 60s, skipKubernetesChecks: ` + skip + `}
  talos-proxmox:output: {talosconfigFile: ` + talosconfig + `}
  talos-proxmox:manifests:
    inline:
      own: {inline: "{apiVersion: v1, kind: Namespace, metadata: {name: own}}"}
`)
	}

	closed := s.try("pulumi", "up", "--stack", "dev", "--config-file", file("false"), "--yes", "--skip-preview", "--non-interactive")
	assert.NotZero(t, closed.code)
	assert.Contains(t, closed.all(), `cluster "talos-dev" is not healthy after 1m0s: check "every Kubernetes node is ready" fails on node ctrl-00 (10.200.5.1): `+
		"the node is not ready: KubeletNotReady: ")
	assert.Contains(t, closed.all(), "cni plugin not initialized")
	assert.Contains(t, closed.all(), "look at: kubectl describe node ctrl-00")
	assert.Contains(t, closed.all(), "talosconfig: "+talosconfig)
	outputs := s.must("pulumi", "stack", "output", "--stack", "dev", "--json").stdout
	assert.NotContains(t, outputs, "kubeconfig", "it is let out by the gate only")

	info, err := os.Stat(talosconfig)
	require.NoError(t, err)
	assert.Equal(t, os.FileMode(0o600), info.Mode().Perm())
	dev := &running{site: s, stack: "dev", talosconfig: talosconfig}
	dev.talosAnswers()

	open := time.Now()
	dev.edit(file("true"))
	assert.Empty(t, s.trace(open).of("talos.bootstrap"), "nothing is bootstrapped twice")
	dev.output("kubeconfig")
}
