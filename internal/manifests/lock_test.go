// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package manifests_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/talos-proxmox/talos-proxmox/internal/manifests"
	"github.com/talos-proxmox/talos-proxmox/spec"
)

func TestLockedChartsAreTheSameForEver(t *testing.T) {
	project := t.TempDir()
	ch := spec.Chart{
		Repository: spec.Ptr("https://helm.example.com/"), Name: spec.Ptr("app"), Version: spec.Ptr("v1.2.3"),
	}
	served := "one"
	fetch := func(context.Context, spec.Chart) ([]byte, error) { return []byte(served), nil }
	cache := manifests.ProjectCache(project, fetch)
	const one, two = "sha256:7692c3ad3540bb803c020b3aee66cd8887123234ea0c6e7143c0add73ff431ed",
		"sha256:3fc4ccfe745870e2c0d99f71f30ff0656c8dedd41cc1d7d3d376b0dbe685e2f3"

	require.NoError(t, cache.Lock.Check(ch, one), "nothing is locked yet")
	kept, err := cache.Lock.Keep(ch, one)
	require.NoError(t, err)
	assert.True(t, kept)
	kept, err = cache.Lock.Keep(ch, two)
	require.NoError(t, err)
	assert.False(t, kept, "the first stays")
	text, err := os.ReadFile(filepath.Join(project, "charts.lock.yaml"))
	require.NoError(t, err)
	assert.Contains(t, string(text), "https://helm.example.com:\n  app-1.2.3: "+one+"\n")
	assert.Contains(t, string(text), "Keep this file in git")

	served = "two"
	_, err = cache.Load(t.Context(), ch)
	require.EqualError(t, err, "chart app v1.2.3 of https://helm.example.com/ has the digest "+two+
		", and charts.lock.yaml says "+one+": the repository or the cache gave another archive")
	assert.NoFileExists(t, cache.Path(ch), "what does not fit is not kept")

	t.Setenv(manifests.LockEnv, "elsewhere.yaml")
	assert.NoError(t, manifests.ProjectCache(project, fetch).Lock.Check(ch, two), "another world has other archives")
	t.Setenv(manifests.LockEnv, "")
	require.NoError(t, os.WriteFile(filepath.Join(project, "charts.lock.yaml"), []byte("- nonsense"), 0o600))
	assert.EqualError(t, cache.Lock.Check(ch, one), "charts.lock.yaml is no list of digests: run `tpx charts` where it was removed")
}
