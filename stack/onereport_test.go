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
// each of four patches, and one of each of two charts. All are told at once, each at its line, and none of them twice.
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
        - inline: {machine: {network: {hostname: another}}}
  talos-proxmox:manifests:
    charts: {demo: {repository: charts/demo, version: 1.0.0}}
  talos-proxmox:gitops:
    provider: flux
    git: {url: "https://git.example.com/a/b.git"}
    chart: {repository: charts/flux2, version: 1.0.0}
`)
	s := source(t, text)
	s.Dir = t.TempDir()
	for name, content := range map[string]string{
		"Pulumi.test.yaml":        text,
		"patches/worker.yaml":     "machine:\n  network:\n    nameserver: [10.0.0.1]\n",
		"patches/ignored.yaml":    "machine: {instal: {}}\n",
		"charts/demo/Chart.yaml":  "apiVersion: v2\nname: demo\nversion: 1.0.0\nkubeVersion: \">=1.99.0-0\"\n",
		"charts/flux2/Chart.yaml": "apiVersion: v2\nname: flux2\nversion: 1.0.0\nkubeVersion: \">=1.98.0-0\"\n",
	} {
		require.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(s.Dir, name)), 0o700))
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
		`gitops.chart (line 38): flux2 1.0.0: the chart wants Kubernetes >=1.98.0-0, and the cluster has v1.35.0: ` +
			`choose a version of the chart that fits, or another kubernetes.version`,
		`kubernetes.apiServer.extraArgs.secure-port (line 18): is a flag that Talos sets itself, and it starts nothing beside it: remove it`,
		`lifecycle.maxUnavailable (line 19): must be a whole number, not text`,
		`manifests.charts.demo (line 34): rendering chart demo 1.0.0: the chart wants Kubernetes >=1.99.0-0, and the cluster has ` +
			`v1.35.0: choose a version of the chart that fits, or another kubernetes.version`,
		`sizes.small.role (line 20): belongs to a node or a pool: remove it here`,
		`talos.patches.all[0].inline.machine.instal (line 24): is not a field that Talos knows; did you mean "install"? (nodes cp-1, w-1)`,
		`talos.patches.all[1].inline.machine.kubelt (line 29): is not a field that Talos knows; did you mean "kubelet"? (nodes cp-1, w-1)`,
		`talos.patches.worker[0].file (line 31): patches/worker.yaml, line 3, machine.network.nameserver: ` +
			`is not a field that Talos knows; did you mean "nameservers"? (node w-1)`,
		`talos.patches.worker[1].inline.machine.network.hostname (line 32): document HostnameConfig: static hostname is already ` +
			`set in v1alpha1 config (node w-1)`,
	}, got)
}
