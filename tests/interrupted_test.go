// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package tests_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// way is an edit that may be interrupted anywhere.
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
		{name: "create", steps: 40, few: []int{6}},
		{name: "upgrade", from: []string{}, to: []string{"version: v1.12.4", "version: v1.12.5"}, steps: 20, few: []int{12}},
		{name: "scale-down", from: []string{}, to: []string{
			"    cp-1: {role: controlplane, vmId: 301, networks: {lan: {address: 10.30.0.1}}}\n", "",
			"    cp-2: {role: controlplane, vmId: 302, networks: {lan: {address: 10.30.0.2}}}\n", "",
		}, steps: 10, few: []int{5}},
	}
}

// TestInterruptedAnywhere kills the program, with the engine and everything that it started, at every
// step of a creation, an upgrade and a scale-down. Each time the next up leads to the end that an
// undisturbed one leads to.
func TestInterruptedAnywhere(t *testing.T) {
	for _, w := range ways() {
		t.Run(w.name, func(t *testing.T) {
			t.Parallel()

			s := newSite(t)
			snapshot := s.begin(w)
			file := s.small(w.to...)

			started := time.Now()
			undisturbed := s.up("small", file)
			steps := len(slices.DeleteFunc(s.trace(started), func(e event) bool { return e.Start.Before(started) }))
			want := undisturbed.shape("small")
			t.Logf("%s takes %d steps", w.name, steps)
			require.GreaterOrEqual(t, steps, w.steps, "steps are missing from the trace: say why there are fewer now")

			for _, k := range w.chosen(steps) {
				s.restore(snapshot)
				s.killedAt(k, "small", file)
				assert.Equalf(t, want, s.again("small", file), "after a kill at step %d", k)
			}
		})
	}
}

// chosen are the steps at which to kill: all where there is time.
func (w way) chosen(steps int) []int {
	if os.Getenv("E2E") != "full" {
		return w.few
	}
	var all []int
	for k := 1; k <= steps; k++ {
		all = append(all, k)
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

// killedAt runs an up and kills it when the site begins its kth operation.
func (s *site) killedAt(k int, stack, file string) result {
	s.t.Helper()

	r := s.lab("fault", "add", "kill", fmt.Sprintf("nth=%d", k))
	require.Zero(s.t, r.code, r.all())
	r = s.try("pulumi", "up", "--stack", stack, "--config-file", file, "--yes", "--skip-preview", "--non-interactive")
	s.t.Logf("killed at step %d: exit code %d", k, r.code)

	return r
}

// again is what an operator does after a run that was killed: the lock that it left is taken away,
// and up is run again. It returns how things stand then.
func (s *site) again(stack, file string) shape {
	s.t.Helper()

	s.unlock(stack)
	s.must("pulumi", "up", "--stack", stack, "--config-file", file, "--yes", "--skip-preview", "--non-interactive")
	s.must("pulumi", "preview", "--stack", stack, "--config-file", file, "--expect-no-changes", "--non-interactive")

	return s.shape(stack)
}

// unlock takes away the lock of a run that was killed, where it left one.
func (s *site) unlock(stack string) {
	s.t.Helper()

	r := s.try("pulumi", "cancel", "--stack", stack, "--yes")
	require.Truef(s.t, r.code == 0 || strings.Contains(r.all(), "no lock"), "%s", r.all())
}
