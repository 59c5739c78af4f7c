// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package stack_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/talos-proxmox/talos-proxmox/spec"
	"github.com/talos-proxmox/talos-proxmox/stack"
)

// TestOneReport has a mistake of each kind in one file: of types, of the file's layers, of rules, and one that Talos finds in
// each of three patches. All are told at once, each at its line, and none of them twice.
func TestOneReport(t *testing.T) {
	t.Parallel()
	text := onBase(t, `  talos-proxmox:kubernetes:
    version: v1.35.0
    apiServer: {extraArgs: {secure-port: "443"}}
  talos-proxmox:lifecycle: {maxUnavailable: many}
  talos-proxmox:sizes: {small: {role: worker}}
  talos-proxmox:talos:
    patches:
      all:
        - inline: {machine: {instal: {disk: /dev/sda, image: x}}}
        - inline: |
            machine:
              sysctls:
                vm.swappiness: "10"
              kubelt: {}
      worker:
        - file: patches/worker.yaml
`)
	s := source(t, text)
	s.Dir = t.TempDir()
	require.NoError(t, os.Mkdir(filepath.Join(s.Dir, "patches"), 0o700))
	for name, content := range map[string]string{
		"Pulumi.test.yaml":     text,
		"patches/worker.yaml":  "machine:\n  network:\n    nameserver: [10.0.0.1]\n",
		"patches/ignored.yaml": "machine: {instal: {}}\n",
	} {
		require.NoError(t, os.WriteFile(filepath.Join(s.Dir, name), []byte(content), 0o600))
	}

	_, err := stack.Load(s)
	var invalid *spec.InvalidError
	require.True(t, errors.As(err, &invalid), "%v", err)
	var got []string
	for _, p := range invalid.Problems {
		got = append(got, p.String())
	}
	assert.Equal(t, []string{
		`kubernetes.apiServer.extraArgs.secure-port (line 18): is a flag that Talos sets itself, and it starts nothing beside it: remove it`,
		`lifecycle.maxUnavailable (line 19): must be a whole number, not text`,
		`sizes.small.role (line 20): belongs to a node or a pool: remove it here`,
		`talos.patches.all[0].inline.machine.instal (line 24): is not a field that Talos knows; did you mean "install"?`,
		`talos.patches.all[1].inline.machine.kubelt (line 29): is not a field that Talos knows; did you mean "kubelet"?`,
		`talos.patches.worker[0].file (line 31): patches/worker.yaml, line 3, machine.network.nameserver: ` +
			`is not a field that Talos knows; did you mean "nameservers"?`,
	}, got)
}
