// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package tests_test

import (
	"os"
	"path/filepath"

	"github.com/stretchr/testify/require"
)

// small copies the stack file of the small cluster, edited, into the project and returns its path there.
func (s *site) small(edits ...string) string {
	s.t.Helper()

	content, err := os.ReadFile(filepath.Join(s.root, "tests", "testdata", "stacks", "small.yaml"))
	require.NoError(s.t, err)
	require.NoError(s.t, os.WriteFile(filepath.Join(s.project, "small.yaml"), content, 0o600))

	return s.stackFile("small.yaml", edits...)
}
