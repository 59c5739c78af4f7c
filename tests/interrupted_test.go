// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package tests_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// way describes an edit that may be interrupted anywhere.
type way struct {
	name string
	// from is the stack file that the site was brought to before, nil for an empty site.
	from []string
	// to are the edits of the small stack file.
	to []string
	// steps are the operations of the site that it takes; never fewer than when this was written.
	steps int
	// few are the steps at which the program is killed when there is little time.
	few []int
}

func ways() []way {
	return []way{
		{name: "create", steps: 30, few: []int{6}},
		{name: "upgrade", from: []string{}, to: []string{"version: v1.12.4", "version: v1.12.5"}, steps: 36, few: []int{14}},
		{name: "scale-down", from: []string{}, to: []string{
			"    cp-1: {role: controlplane, vmId: 301, networks: {lan: {address: 10.30.0.1}}}\n", "",
			"    cp-2: {role: controlplane, vmId: 302, networks: {lan: {address: 10.30.0.2}}}\n", "",
		}, steps: 18, few: []int{7}},
	}
}

// TestInterruptedAnywhere kills the program, with the engine and everything that it started, at every
// step of a creation, an upgrade and a scale-down. Each time the next up leads to the end that an
// undisturbed one leads to.
//
// As cores allow, several sites are swept beside each other, all from the same beginning.
func TestInterruptedAnywhere(t *testing.T) {
	const coresForASite = 4 // three ways are gone at the same time
	sites := max(1, runtime.GOMAXPROCS(0)/coresForASite)
	for _, w := range ways() {
		t.Run(w.name, func(t *testing.T) {
			t.Parallel()

			s := newSite(t)
			snapshot := s.begin(w)
			file := s.small(w.to...)

			started := time.Now()
			undisturbed := s.up("small", file)
			steps := s.steps(started)
			want := undisturbed.shape("small")
			t.Logf("%s takes %d steps", w.name, steps)
			require.GreaterOrEqual(t, steps, w.steps, "steps are missing from the trace: say why there are fewer now")

			r := s.lab("stop")
			require.Zero(t, r.code, r.all())
			var kills atomic.Int32
			t.Run("sites", func(t *testing.T) { // ends when all of them have
				for i := range sites {
					t.Run(strconv.Itoa(i), func(t *testing.T) {
						t.Parallel()
						kills.Add(int32(newSite(t).sweep(w, snapshot, want, i, sites)))
					})
				}
			})
			t.Logf("%s was killed at %d steps", w.name, kills.Load())
			assert.GreaterOrEqual(t, int(kills.Load()), min(w.steps, len(w.chosen())))
		})
	}
}

// sweep kills the program at every step that falls to one of so many sites, and says at how many it did.
func (s *site) sweep(w way, snapshot string, want shape, first, sites int) int {
	s.t.Helper()

	kills := 0
	for i, k := range w.chosen() {
		if i%sites != first {
			continue
		}
		s.restore(snapshot)
		file := s.small(w.to...)
		if !s.killedAt(k, "small", file) {
			break // it has come to its end
		}
		kills++
		s.endsLike(want, k, "small", file)
	}

	return kills
}

// steps counts what a run has done at the site, without what was tried in vain.
func (s *site) steps(started time.Time) int {
	s.t.Helper()

	return len(slices.DeleteFunc(s.trace(started), func(e event) bool { return e.Start.Before(started) || e.Error != "" }))
}

// chosen returns the steps at which to kill: all where there is time, or those that KILL_AT names, "3,17".
func (w way) chosen() []int {
	if named := os.Getenv("KILL_AT"); named != "" {
		var steps []int
		for _, text := range strings.Split(named, ",") {
			step, _ := strconv.Atoi(text) // 0 strikes nowhere, and is refused
			steps = append(steps, step)
		}

		return steps
	}
	if os.Getenv("E2E") != "full" {
		return w.few
	}
	const more = 200 // than there are

	all := make([]int, more)
	for k := range all {
		all[k] = k + 1
	}

	return all
}

// begin brings the site to where the way begins and returns a copy of it.
func (s *site) begin(w way) string {
	s.t.Helper()

	if w.from == nil {
		s.create("small")
	} else {
		s.up("small", s.small(w.from...))
	}

	return s.snapshot()
}

// snapshot copies the site, the stacks' state with it, as it is on disk.
func (s *site) snapshot() string {
	s.t.Helper()

	r := s.lab("stop")
	require.Zero(s.t, r.code, r.all())
	copied := filepath.Join(s.t.TempDir(), "snapshot")
	s.copyTree(s.dir, copied)

	return copied
}

// restore brings the site back to a copy.
func (s *site) restore(snapshot string) {
	s.t.Helper()

	r := s.lab("stop")
	require.Zero(s.t, r.code, r.all())
	require.NoError(s.t, os.RemoveAll(s.dir))
	s.copyTree(snapshot, s.dir)
}

func (s *site) copyTree(from, to string) {
	s.t.Helper()

	out, err := exec.CommandContext(s.t.Context(), "cp", "-a", from, to).CombinedOutput()
	require.NoErrorf(s.t, err, "%s", out)
}

// killedAt runs an up and kills it when the site begins its kth operation. It is false when there was no
// such operation.
func (s *site) killedAt(k int, stack, file string) bool {
	s.t.Helper()

	r := s.lab("fault", "add", "kill", fmt.Sprintf("nth=%d", k))
	require.Zero(s.t, r.code, r.all())
	r = s.try("pulumi", "up", "--stack", stack, "--config-file", file, "--yes", "--skip-preview", "--non-interactive")
	if r.code == 0 {
		return false
	}
	_, why, killed := strings.Cut(r.stderr, "lab: the command is killed ")
	require.Truef(s.t, killed, "the run failed before step %d: %s", k, r.all())
	why, _, _ = strings.Cut(why, ",")
	s.t.Logf("step %d: killed %s", k, why)

	return true
}

// twice is what the provider says of a VM that it has deleted already: the state has it still when the
// run was killed just then. The operator is told to run up with --refresh.
var twice = regexp.MustCompile(`error: deleting \S+: the requested resource does not exist`)

// endsLike asserts that what an operator does after a run that was killed leads to the same end: taking
// away the lock that it left, running up again, and clearing the engine's notes of what it was about to
// create, which stay for ever otherwise.
func (s *site) endsLike(want shape, k int, stack, file string) {
	s.t.Helper()

	s.unlock(stack)
	command := []string{"pulumi", "up", "--stack", stack, "--config-file", file, "--yes", "--skip-preview", "--non-interactive"}
	up := s.try(command...)
	if twice.MatchString(up.all()) {
		up = s.try(append(command, "--refresh")...)
	}
	if !assert.Zerof(s.t, up.code, "up after a kill at step %d: %s", k, up.all()) {
		return
	}
	notes := s.try("pulumi", "refresh", "--stack", stack, "--config-file", file, "--clear-pending-creates", "--yes",
		"--skip-preview", "--non-interactive", "--expect-no-changes")
	assert.Zerof(s.t, notes.code, "refresh after a kill at step %d: %s", k, notes.all())
	preview := s.try("pulumi", "preview", "--stack", stack, "--config-file", file, "--expect-no-changes", "--non-interactive")
	assert.Zerof(s.t, preview.code, "preview after a kill at step %d: %s", k, preview.all())
	assert.Equalf(s.t, want, s.shape(stack), "after a kill at step %d", k)
}

// unlock takes away the lock of a run that was killed, where it left one.
func (s *site) unlock(stack string) {
	s.t.Helper()

	r := s.try("pulumi", "cancel", "--stack", stack, "--yes")
	require.Truef(s.t, r.code == 0 || strings.Contains(r.all(), "no lock"), "%s", r.all())
}
