// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package machineconfig_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/talos-proxmox/talos-proxmox/internal/check"
	"github.com/talos-proxmox/talos-proxmox/internal/machineconfig"
	"github.com/talos-proxmox/talos-proxmox/internal/versions"
	"github.com/talos-proxmox/talos-proxmox/spec"
)

var update = flag.Bool("update", false, "rewrite the golden files; the tests then fail, so that nobody forgets to look")

// releases are a Talos release of each contract, with the newest Kubernetes it takes.
var releases = []struct{ contract, talos, kubernetes string }{
	{"v1.10", "v1.10.9", "v1.33.6"},
	{"v1.11", "v1.11.6", "v1.34.2"},
	{"v1.12", "v1.12.4", "v1.35.0"},
	{"v1.13", "v1.13.0", "v1.36.0"},
	{"v1.14", "v1.14.1", "v1.37.1"},
}

// nodePatch returns a reader of the file that every node's own patch is in, in the contract's form.
func nodePatch(c versions.Contract) func(path string) ([]byte, error) {
	text := "machine:\n  nodeAnnotations:\n    example.com/patched: \"true\"\n"
	if c.KubernetesDocuments() {
		text = "apiVersion: v1alpha1\nkind: KubeNodeConfig\nannotations:\n  example.com/patched: \"true\"\n"
	}

	return func(path string) ([]byte, error) {
		if path != "patches/node.yaml" {
			return nil, fmt.Errorf("open %s: %w", path, os.ErrNotExist)
		}

		return []byte(text), nil
	}
}

// goldenInput returns the input of a golden file.
func goldenInput(t *testing.T, talos, kubernetes string, all bool) machineconfig.Input {
	t.Helper()
	if !all {
		return input(cluster(talos, kubernetes))
	}
	in := input(cluster(talos, kubernetes, everything))
	version, err := versions.ParseTalos(talos)
	require.NoError(t, err)
	in.ReadFile = nodePatch(version.Contract())
	in.Manifests = []machineconfig.Manifest{
		{Name: "first", Contents: "apiVersion: v1\nkind: Namespace\nmetadata:\n  name: first\n"},
		{Name: "second", Contents: "apiVersion: v1\nkind: Namespace\nmetadata:\n  name: second\n"},
	}

	return in
}

func TestGolden(t *testing.T) {
	t.Parallel()
	for _, release := range releases {
		for name, all := range map[string]bool{"base": false, "everything": true} {
			for role, node := range map[string]string{"controlplane": "cp-1", "worker": "work-1"} {
				path := filepath.Join("testdata", release.contract, role+"-"+name+".yaml")
				t.Run(path, func(t *testing.T) {
					t.Parallel()
					compare(t, path, render(t, goldenInput(t, release.talos, release.kubernetes, all), node))
				})
			}
		}
	}
}

// compare fails when the text differs from the golden file, and always when it was rewritten.
func compare(t *testing.T, path, got string) {
	t.Helper()
	if *update {
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, []byte(got), 0o600))
		t.Errorf("%s was rewritten: look at the difference, then test without -update", path)

		return
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err)
	assert.Equal(t, string(want), got)
}

func TestEveryGoldenIsValid(t *testing.T) {
	t.Parallel()
	for _, release := range releases {
		for _, all := range []bool{false, true} {
			var l check.List
			machineconfig.Check(goldenInput(t, release.talos, release.kubernetes, all), &l)
			assert.NoError(t, l.Err(release.contract))
		}
	}
}

func TestNewestContractHasGoldens(t *testing.T) {
	t.Parallel()
	newest := releases[len(releases)-1]
	assert.Equal(t, versions.Newest.String(), newest.contract)
	assert.Equal(t, versions.Oldest.String(), releases[0].contract)
	talos, err := versions.ParseTalos(newest.talos)
	require.NoError(t, err)
	assert.Equal(t, newest.contract, talos.Contract().String())
}

func TestRenderingIsDeterministic(t *testing.T) {
	t.Parallel()
	for _, release := range releases {
		in := goldenInput(t, release.talos, release.kubernetes, true)
		first := render(t, in, "cp-1")
		for range 20 {
			require.Equal(t, first, render(t, in, "cp-1"))
		}
	}
}

func TestOldContractOnNewTalosKeepsItsForms(t *testing.T) {
	t.Parallel()
	old := cluster("v1.12.4", "v1.33.6", func(c *spec.Config) { c.Talos.Contract = spec.Ptr("v1.10") })
	assert.NotContains(t, render(t, input(old), "cp-1"), "HostnameConfig")
	var l check.List
	machineconfig.Check(input(old), &l)
	assert.NoError(t, l.Err("old contract"))
}
