// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package tests_test

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// named is a test in the table of pitfalls: `directory TestName/case`, the directory left out for the root's.
var named = regexp.MustCompile("`(?:([a-z/]+) )?(Test\\w+)(?:/([^`]+))?`")

// TestEveryPitfallsTestExists holds the table against the repository.
func TestEveryPitfallsTestExists(t *testing.T) {
	t.Parallel()

	table, err := os.ReadFile(filepath.Join("..", "docs", "pitfalls.md"))
	require.NoError(t, err)
	rows := 0
	for line := range strings.Lines(string(table)) {
		if !strings.HasPrefix(line, "| ") || strings.HasPrefix(line, "| Pitfall") {
			continue
		}
		rows++
		require.Len(t, strings.Split(line, "|"), 7, line)
		tests := named.FindAllStringSubmatch(line, -1)
		assert.NotEmpty(t, append(tests, regexp.MustCompile(`proxmox\.md`).FindAllStringSubmatch(line, -1)...), line)
		for _, test := range tests {
			dir := filepath.Join("..", test[1])
			assert.Truef(t, holds(t, dir, "_test.go", "func "+test[2]+"("), "there is no test %s in %s", test[2], test[1])
			if test[3] != "" {
				assert.Truef(t, holds(t, dir, "", test[3]), "%s in %s has no case %q", test[2], test[1], test[3])
			}
		}
	}
	assert.Greater(t, rows, 50)
}

// holds reports whether a test file of the directory, or a file of its testdata, has the text.
func holds(t *testing.T, dir, suffix, text string) bool {
	t.Helper()

	found := false
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if e.IsDir() {
			if path != dir && !strings.Contains(path, "testdata") {
				return filepath.SkipDir
			}

			return nil
		}
		if !strings.HasSuffix(path, suffix) || !strings.HasSuffix(path, "_test.go") && !strings.Contains(path, "testdata") {
			return nil
		}
		content, err := os.ReadFile(path)
		found = found || bytes.Contains(content, []byte(text))

		return err
	})
	require.NoError(t, err)

	return found
}

// TestNoFunctionDialsANode: functions run in previews, and these wait for nodes that may be down.
func TestNoFunctionDialsANode(t *testing.T) {
	t.Parallel()

	dials := regexp.MustCompile(`\b(GetHealth(Output)?\(ctx|LookupKubeconfig|GetDisks)`)
	for _, dir := range []string{".", "components", "stack", "spec"} {
		files, err := filepath.Glob(filepath.Join("..", dir, "*.go"))
		require.NoError(t, err)
		for _, file := range files {
			source, err := os.ReadFile(file)
			require.NoError(t, err)
			assert.NotRegexp(t, dials, string(source), file)
		}
	}
}
