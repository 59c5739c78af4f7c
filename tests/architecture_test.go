// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package tests_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// quotedPath matches what docs/architecture.md quotes that is a path of the repository.
var quotedPath = regexp.MustCompile("`([a-z][A-Za-z0-9_.*-]*(?:/[A-Za-z0-9_.*-]*)+|[a-z]+\\.go)`")

// TestArchitectureNamesWhatThereIs holds that the page about the rooms leads nobody astray, and leaves out no room.
func TestArchitectureNamesWhatThereIs(t *testing.T) {
	t.Parallel()

	page, err := os.ReadFile("../docs/architecture.md")
	require.NoError(t, err)
	named := map[string]bool{}
	for _, m := range quotedPath.FindAllStringSubmatch(string(page), -1) {
		found, err := filepath.Glob(filepath.Join("..", m[1]))
		require.NoError(t, err)
		assert.NotEmpty(t, found, "docs/architecture.md names %s", m[1])
		named[strings.TrimSuffix(m[1], "/")] = true
	}
	assert.Greater(t, len(named), 20)

	rooms, err := filepath.Glob("../internal/*")
	require.NoError(t, err)
	for _, room := range rooms {
		assert.True(t, named["internal/"+filepath.Base(room)], "docs/architecture.md does not name internal/%s", filepath.Base(room))
	}
}
