// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package tests_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestCtrlC presses Ctrl-C once, and twice, in the middle of a creation and of an upgrade. The next up
// leads to the end that an undisturbed one leads to.
func TestCtrlC(t *testing.T) {
	heavy(t)
	t.Parallel()
	s := newSite(t)
	s.create("small")
	empty := s.snapshot()
	want := s.up("small", s.small()).shape("small")
	created := s.snapshot()
	newer := s.small("version: v1.12.4", "version: v1.12.5")
	s.up("small", newer)
	upgraded := s.shape("small")

	for _, times := range []int{1, 2} {
		s.restore(empty)
		s.interrupted("talos.apply", times, "small", s.small())
		s.endsLike(want, times, "small", s.small())

		s.restore(created)
		started := time.Now()
		s.interrupted("talos.upgrade", times, "small", newer)
		s.endsLike(upgraded, times, "small", newer)
		s.passesTheGate(started, 1)
	}
}

// interrupted runs an up and presses Ctrl-C so many times when the site has ended such an operation.
func (s *site) interrupted(op string, times int, stack, file string) {
	s.t.Helper()

	s.must("true") // the lab runs
	seen := s.offset()
	cmd := s.command("pulumi", "up", "--stack", stack, "--config-file", file, "--yes", "--skip-preview", "--non-interactive")
	var out bytes.Buffer
	cmd.Dir, cmd.Stdout, cmd.Stderr = s.project, &out, &out
	cmd.Stdin = strings.NewReader("") // no terminal, which would send its signals to everybody by itself
	require.NoError(s.t, cmd.Start())
	s.await(seen, op)
	for range times {
		require.NoError(s.t, cmd.Process.Signal(syscall.SIGINT))
	}
	assert.Error(s.t, cmd.Wait(), "an interrupted up does not succeed")
	s.t.Logf("Ctrl-C, %d times, at %s:\n%s", times, op, out.String())
}

// offset returns how long the site's trace is now.
func (s *site) offset() int64 {
	s.t.Helper()
	info, err := os.Stat(filepath.Join(s.dir, "trace.jsonl"))
	require.NoError(s.t, err)

	return info.Size()
}

// await waits until the trace has such an operation behind an offset.
func (s *site) await(offset int64, op string) {
	s.t.Helper()
	require.Eventually(s.t, func() bool {
		content, err := os.ReadFile(filepath.Join(s.dir, "trace.jsonl"))

		return err == nil && strings.Contains(string(content[offset:]), strconv.Quote(op))
	}, 2*time.Minute, 10*time.Millisecond, op)
}
