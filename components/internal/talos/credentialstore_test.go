// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package talos

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestStoreCommandGetsTheSecretAndNotTheStack(t *testing.T) {
	t.Setenv("PULUMI_CONFIG", "everything")
	t.Setenv("PROXMOX_VE_API_TOKEN", "token")
	t.Setenv("VAULT_ADDR", "https://vault.example.com")
	dir := t.TempDir()
	script := "cat > " + filepath.Join(dir, "in") + "; env > " + filepath.Join(dir, "env")

	require.NoError(t, runStore(t.Context(), []string{"sh", "-c", script}, "the secret"))
	in, err := os.ReadFile(filepath.Join(dir, "in"))
	require.NoError(t, err)
	assert.Equal(t, "the secret", string(in))
	env, err := os.ReadFile(filepath.Join(dir, "env"))
	require.NoError(t, err)
	assert.Contains(t, string(env), "VAULT_ADDR=https://vault.example.com")
	assert.NotContains(t, string(env), "PULUMI_CONFIG")
	assert.NotContains(t, string(env), "PROXMOX_VE_API_TOKEN")
}

func TestStoreCommandThatFailsIsQuotedWithoutTheSecret(t *testing.T) {
	t.Parallel()
	err := runStore(t.Context(), []string{"sh", "-c", "echo permission denied for; cat >&2; echo >&2; echo permission denied >&2; exit 2"},
		"key: c2VjcmV0LXNlY3JldC1zZWNyZXQ=\nother: line\n")
	require.EqualError(t, err, "exit status 2: [secret]\n[secret]\n\npermission denied")
	require.EqualError(t, runStore(t.Context(), []string{"sh", "-c", "exit 3"}, "secret"), "exit status 3")
}
