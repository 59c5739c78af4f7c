// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package stackfile_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/talos-proxmox/talos-proxmox/cmd/internal/stackfile"
	"github.com/talos-proxmox/talos-proxmox/internal/check"
	"github.com/talos-proxmox/talos-proxmox/internal/machineconfig"
)

// directories are those with stack files that the project ships.
func directories(t *testing.T) []string {
	t.Helper()
	examples, err := filepath.Glob(filepath.Join("..", "..", "..", "examples", "*"))
	require.NoError(t, err)

	return append([]string{filepath.Join("..", "..", "..")}, examples...)
}

func TestTalosTakesEveryShippedStack(t *testing.T) {
	t.Parallel()
	stacks := 0
	for _, dir := range directories(t) {
		names, err := stackfile.Names(dir)
		require.NoError(t, err)
		for _, name := range names {
			s, err := stackfile.Load(dir, name)
			require.NoError(t, err)
			var l check.List
			machineconfig.Check(machineconfig.Input{Config: s.Config, ReadFile: func(path string) ([]byte, error) {
				return os.ReadFile(filepath.Join(dir, path))
			}}, &l)
			assert.NoError(t, l.Err("stack "+name))
			stacks++
		}
	}
	assert.GreaterOrEqual(t, stacks, 4)
}

func TestChartsOfTheShippedStacks(t *testing.T) {
	t.Parallel()
	root := filepath.Join("..", "..", "..")
	s, err := stackfile.Load(root, "prod")
	require.NoError(t, err)
	var found []string
	for _, c := range stackfile.Charts(s.Config) {
		found = append(found, *c.Repository+" "+*c.Name+" "+*c.Version)
	}
	assert.Equal(t, []string{
		"https://helm.cilium.io cilium 1.18.4", "https://fluxcd-community.github.io/helm-charts flux2 2.18.2",
	}, found)
}

func TestSecureValuesStayClosed(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	text, err := os.ReadFile(filepath.Join("..", "..", "..", "Pulumi.prod.yaml"))
	require.NoError(t, err)
	with := strings.Replace(string(text), "ghcr.io: {endpoints:", "ghcr.io: {username: robot, password: {secure: v1:abcd:efgh}, endpoints:", 1)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "Pulumi.mine.yaml"), []byte(with), 0o600))
	names, err := stackfile.Names(dir)
	require.NoError(t, err)
	assert.Equal(t, []string{"mine"}, names)
	s, err := stackfile.Load(dir, "mine")
	require.NoError(t, err)
	assert.Equal(t, stackfile.Closed, s.Talos.Registries["ghcr.io"].Password.Reveal())
}
