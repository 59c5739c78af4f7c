// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package tests_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/siderolabs/talos/pkg/machinery/config"
	"github.com/siderolabs/talos/pkg/machinery/config/generate/secrets"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"gopkg.in/yaml.v3"
)

// TestAdoption takes over a cluster that somebody else made, of which there are the secrets bundle and
// the ids of the VMs, by the procedure that the guide tells: nothing is replaced, nothing bootstrapped
// again, and the stack rules it from then on.
func TestAdoption(t *testing.T) {
	heavy(t)
	t.Parallel()
	s := newSite(t)
	bundle, err := secrets.NewBundle(secrets.NewClock(), config.TalosVersionCurrent)
	require.NoError(t, err)
	text, err := yaml.Marshal(bundle)
	require.NoError(t, err)

	s.create("small")
	theirs := s.small()
	s.must("pulumi", "config", "set", "--stack", "small", "--config-file", theirs, "--secret", "--path",
		"talos-proxmox:cluster.secretsBundle", string(text))
	s.up("small", theirs)
	s.must("pulumi", "stack", "rm", "small", "--force", "--yes", "--preserve-config")

	s.create("mine")
	mine := s.small("  talos-proxmox:talos:", "    adopted: true\n  talos-proxmox:talos:")
	s.must("pulumi", "config", "set", "--stack", "mine", "--config-file", mine, "--secret", "--path",
		"talos-proxmox:cluster.secretsBundle", string(text))
	started := time.Now()
	s.must("pulumi", "config", "set", "--stack", "mine", "--config-file", mine, "proxmoxve:endpoint", "https://pve1.example.com:8006")
	s.must("pulumi", "import", "--stack", "mine", "--config-file", mine,
		"--file", s.importFile(), "--protect=false", "--generate-code=false", "--yes", "--skip-preview", "--non-interactive")

	preview := s.must("pulumi", "preview", "--stack", "mine", "--config-file", mine, "--diff", "--non-interactive")
	assert.NotContains(t, preview.all(), "replace", "nothing is replaced")
	assert.NotContains(t, preview.all(), "+ proxmoxve:VM/virtualMachine:VirtualMachine", "no VM is made")
	t.Log(preview.all())

	c := &running{site: s, stack: "mine", file: mine}
	c.edit(mine)
	c.kubeconfig = c.output("kubeconfig")
	c.hasNodes("cp-1", "cp-2", "cp-3")
	seen := s.trace(started)
	assert.Empty(t, seen.of("talos.bootstrap", "talos.upgrade", "talos.reset", "pve.qmcreate"))
	assert.Empty(t, seen.gateProblems(1))
	c.isSettled()

	started = time.Now()
	c.edit(s.newer(mine))
	s.passesTheGate(started, 1)
	s.inOrder(started, "talos.upgrade", "node/10.30.0.1", "node/10.30.0.2", "node/10.30.0.3")
}

// importFile names the VMs of the small cluster, as `pulumi import --file` reads them.
func (s *site) importFile() string {
	s.t.Helper()

	var resources []map[string]any
	for i := 1; i <= 3; i++ {
		node := fmt.Sprintf("small-cp-%d", i)
		resources = append(resources,
			map[string]any{"type": "talos-proxmox:components:ProxmoxNode", "name": node, "component": true},
			map[string]any{
				"type": "proxmoxve:VM/virtualMachine:VirtualMachine", "name": node + "-vm", "id": fmt.Sprintf("pve1/%d", 300+i),
				"parent": node, "version": "6.18.1",
			})
	}
	text, err := json.MarshalIndent(map[string]any{"resources": resources}, "", "  ")
	require.NoError(s.t, err)
	path := filepath.Join(s.t.TempDir(), "import.json")
	require.NoError(s.t, os.WriteFile(path, text, 0o600))

	return path
}

// newer is the same stack file with a newer Talos.
func (s *site) newer(file string) string {
	s.t.Helper()

	content, err := os.ReadFile(file)
	require.NoError(s.t, err)
	require.NoError(s.t, os.WriteFile(filepath.Join(s.project, "newer.yaml"), content, 0o600))

	return s.stackFile("newer.yaml", "version: v1.12.4", "version: v1.12.5")
}
