// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package daemon

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestEveryOperationCanBeNamed reads the lab's sources: what they trace is what a fault can name.
func TestEveryOperationCanBeNamed(t *testing.T) {
	t.Parallel()

	begin := regexp.MustCompile(`Begin\("([a-z]+\.[a-z]+)"`)
	spawn := regexp.MustCompile(`spawn\([^"\n]*"([a-z]+)"`)
	found := map[string]bool{}
	require.NoError(t, filepath.WalkDir("..", func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		source, err := os.ReadFile(path)
		for _, m := range begin.FindAllSubmatch(source, -1) {
			found[string(m[1])] = true
		}
		for _, m := range spawn.FindAllSubmatch(source, -1) {
			found["pve."+string(m[1])] = true
		}

		return err
	}))

	var names []string
	for n := range found {
		names = append(names, n)
	}
	slices.Sort(names)
	assert.Equal(t, names, operations())
}
