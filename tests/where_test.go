// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package tests_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestMakeFindsTheStack holds where `make drift` and its like run: in the lab for a stack that only the lab has, and with
// one's own login for any other, also while a lab is there.
func TestMakeFindsTheStack(t *testing.T) {
	t.Parallel()
	script, err := filepath.Abs(filepath.Join("..", "hack", "where.sh"))
	require.NoError(t, err)
	dir := t.TempDir()
	stacks := filepath.Join(dir, ".lab", "pulumi-state", ".pulumi", "stacks", "talos-proxmox")
	require.NoError(t, os.MkdirAll(stacks, 0o700))
	require.NoError(t, os.MkdirAll(filepath.Join(dir, "bin"), 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(stacks, "dev.json"), nil, 0o600))
	where := func(stack string, environment ...string) string {
		cmd := exec.CommandContext(t.Context(), script, stack, filepath.Join(dir, ".lab"))
		cmd.Dir, cmd.Env = dir, append([]string{"PATH=" + os.Getenv("PATH")}, environment...)
		out, err := cmd.Output()
		require.NoError(t, err)

		return string(out)
	}

	assert.Empty(t, where("dev"), "there is no lab")
	require.NoError(t, os.WriteFile(filepath.Join(dir, "bin", "lab"), nil, 0o700))
	assert.Equal(t, "bin/lab exec --\n", where("dev"))
	assert.Empty(t, where("prod"))
	assert.Empty(t, where("dev", "PULUMI_BACKEND_URL=s3://ours"))
}
