// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package tests_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

// TestTheOutputOfAnEditIsShort counts the lines that a preview with its diff, and the up, print for one edited line of
// the stack file: the edit shows, the configuration that it is part of does not. The stack's outputs, which Pulumi prints
// whether or not they change, are left out.
func TestTheOutputOfAnEditIsShort(t *testing.T) {
	t.Parallel()
	const mostOfPreview, mostOfUp, longest = 25, 30, 300
	s := newSite(t)
	nodes := []string{"cp-1", "worker-2", "worker-3", "worker-4"}
	c := s.up("small", s.of(nodes))
	c.again() // the engine learns the order in which a cluster that lives is changed
	worker := nodeLine("worker-3")
	c.file = s.of(nodes, worker, strings.Replace(worker, "vmId:", "labels: {example.com/rack: r-17}, vmId:", 1))
	args := []string{"--stack", "small", "--config-file", c.file, "--non-interactive"}

	preview := s.must(append([]string{"pulumi", "preview", "--diff"}, args...)...)
	assert.LessOrEqual(t, lines(t, preview.all()), mostOfPreview)
	up := s.must(append([]string{"pulumi", "up", "--yes", "--skip-preview", "--suppress-outputs"}, args...)...)
	assert.LessOrEqual(t, lines(t, up.all()), mostOfUp)
	for _, line := range strings.Split(preview.all()+up.all(), "\n") {
		assert.LessOrEqual(t, len(line), longest, "%s", line)
	}
	c.isSettled()
}

// keptLines returns the lines about a node that stay when a run has ended: those of its diagnostics.
func keptLines(output, node string) []string {
	_, diagnostics, _ := strings.Cut(output, "\nDiagnostics:\n")
	diagnostics, _, _ = strings.Cut(diagnostics, "\nOutputs:\n")
	var kept []string
	for line := range strings.Lines(diagnostics) {
		if strings.Contains(line, node) && !strings.HasSuffix(strings.TrimSpace(line), "):") { // not the resource's name
			kept = append(kept, strings.TrimSpace(line))
		}
	}

	return kept
}

// lines counts the lines that are not empty.
func lines(t *testing.T, text string) int {
	t.Helper()
	count := 0
	for line := range strings.Lines(text) {
		if strings.TrimSpace(line) != "" {
			count++
		}
	}
	t.Logf("%d lines:\n%s", count, text)

	return count
}
