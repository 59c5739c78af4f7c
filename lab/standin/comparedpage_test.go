// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package standin_test

import (
	"compress/gzip"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestComparedPage holds the table of plugins in docs/lab.md against the recordings: each of their scenes must be equal, or
// the plugin's own test fails.
func TestComparedPage(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob(filepath.Join("testdata", "recorded", "*.json.gz"))
	require.NoError(t, err)
	require.NotEmpty(t, files)
	var table strings.Builder
	table.WriteString("| Part | Compared with | Equal |\n|---|---|---|\n")
	for _, file := range files {
		name := regexp.MustCompile(`^(.+)-v([0-9.]+)\.json\.gz$`).FindStringSubmatch(filepath.Base(file))
		require.NotNil(t, name, file)
		scenes := scenesIn(t, file)
		fmt.Fprintf(&table, "| stand-in for the provider `%s` | the plugin %s %s | %d of %d scenes |\n", name[1], name[1], name[2], scenes, scenes)
	}
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "lab.md"))
	require.NoError(t, err)
	assert.Contains(t, string(page), "<!-- compared with plugins -->\n"+table.String()+"<!-- end -->\n", "docs/lab.md has another table")
}

func scenesIn(t *testing.T, file string) int {
	t.Helper()
	f, err := os.Open(file)
	require.NoError(t, err)
	defer func() { _ = f.Close() }()
	unpacked, err := gzip.NewReader(f)
	require.NoError(t, err)
	var kept recording
	require.NoError(t, json.NewDecoder(unpacked).Decode(&kept))

	return len(kept.Stories)
}
