// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package docgen_test

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/talos-proxmox/talos-proxmox/stack"
	"github.com/talos-proxmox/talos-proxmox/stack/docgen"
)

func TestGeneratedFilesAreFresh(t *testing.T) {
	t.Parallel()
	stale, err := docgen.Stale("../..")
	require.NoError(t, err)
	assert.Empty(t, stale, "run `go run ./cmd/stackdoc`")
}

// TestPageSpeaksOfKeys holds that the page names settings as a stack file does, not as Go does.
func TestPageSpeaksOfKeys(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../" + docgen.PagePath)
	require.NoError(t, err)
	humps := regexp.MustCompile(`[a-z][A-Z]`)
	for _, k := range stack.Keys() {
		if k.Field == k.Path[strings.LastIndexByte(k.Path, '.')+1:] || !humps.MatchString(k.Field) || k.Field == "CoreDNS" {
			continue
		}
		cell := regexp.MustCompile(`\| [^|\n]*\b` + k.Field + `\b[^|\n\]]* \|\n`)
		assert.Empty(t, cell.FindString(string(page)), k.Field)
	}
	assert.NotContains(t, string(page), "Https:")
	assert.Contains(t, string(page), "`lifecycle.replace` drains it and rebuilds its VM", "as the setting itself says")
}
