// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package docgen_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/talos-proxmox/talos-proxmox/stack/docgen"
)

func TestGeneratedFilesAreFresh(t *testing.T) {
	t.Parallel()
	stale, err := docgen.Stale("../..")
	require.NoError(t, err)
	assert.Empty(t, stale, "run `go run ./cmd/stackdoc`")
}
