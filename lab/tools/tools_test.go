// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package tools_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/talos-proxmox/talos-proxmox/lab/tools"
)

// checkout returns a directory whose bin holds the named tools.
func checkout(t *testing.T, names ...string) string {
	t.Helper()

	dir := t.TempDir()
	require.NoError(t, os.Mkdir(filepath.Join(dir, "bin"), 0o700))
	for _, name := range names {
		require.NoError(t, os.WriteFile(filepath.Join(dir, "bin", name), nil, 0o600))
	}

	return dir
}

func TestToolsAreFoundAboveAProgram(t *testing.T) {
	t.Setenv("LAB_BIN", "")
	t.Setenv("LAB_KUBERNETES", "")

	dir := checkout(t, tools.Kubernetes)
	deep := filepath.Join(dir, "a", "b")
	require.NoError(t, os.MkdirAll(deep, 0o700))

	found, err := tools.Above(deep)
	require.NoError(t, err)
	assert.Equal(t, tools.Dir(filepath.Join(dir, "bin")), found)

	path, err := found.Find(tools.Kubernetes)
	require.NoError(t, err)
	assert.Equal(t, filepath.Join(dir, "bin", tools.Kubernetes), path)
}

func TestAMissingToolIsSaidWithWhatToDo(t *testing.T) {
	t.Setenv("LAB_BIN", "")
	t.Setenv("LAB_KUBERNETES", "")

	dir := checkout(t)
	_, err := tools.Above(dir)
	require.EqualError(t, err, "the lab's tools are in no bin directory at or above "+dir+": run `make tools` in a checkout of "+
		"talos-proxmox and set LAB_BIN to the path of its bin directory")

	_, err = tools.Dir(filepath.Join(dir, "bin")).Find(tools.Pulumi)
	require.EqualError(t, err, filepath.Join(dir, "bin", "pulumi")+" is missing: run `make tools`")
}

func TestVariablesNameTools(t *testing.T) {
	dir := checkout(t, "elsewhere")
	t.Setenv("LAB_BIN", filepath.Join(dir, "bin"))
	t.Setenv("LAB_KUBERNETES", filepath.Join(dir, "bin", "elsewhere"))

	found, err := tools.Above("/")
	require.NoError(t, err)
	path, err := found.Find(tools.Kubernetes)
	require.NoError(t, err)
	assert.Equal(t, filepath.Join(dir, "bin", "elsewhere"), path)
}
