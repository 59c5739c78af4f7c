// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package stack_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/talos-proxmox/talos-proxmox/stack"
)

// TestLinesOfAFileOutsideTheProject reads a stack file that lies elsewhere: its lines are known all the same.
func TestLinesOfAFileOutsideTheProject(t *testing.T) {
	t.Parallel()
	text := onBase(t, "  talos-proxmox:lifecycle: {maxUnavailable: 0}\n")
	s := source(t, text)
	s.Dir, s.File = t.TempDir(), filepath.Join(t.TempDir(), "elsewhere.yaml")
	require.NoError(t, os.WriteFile(s.File, []byte(text), 0o600))
	_, err := stack.Load(s)
	assert.EqualError(t, err, "stack test: 1 problem\n  lifecycle.maxUnavailable (line 16): 0 is too small: the least is 1")
}
