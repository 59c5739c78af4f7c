// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package tests_test

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestTheHostReboots cuts the power of the only host, with every VM on it, in the middle of a creation and
// of an upgrade, and gives it back. The next up leads to the end that an undisturbed one leads to. So it does
// when a single machine loses its power while Talos is being installed on it.
func TestTheHostReboots(t *testing.T) {
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

	for i, op := range []string{"pve.qmcreate", "talos.apply", "etcd.join"} {
		s.restore(empty)
		s.disturbed(op, "small", s.small(), s.rebootHost)
		s.endsLike(want, i, "small", s.small())
	}
	s.restore(empty)
	s.disturbed("talos.apply", "small", s.small(), func() {
		s.power(301, "stop", "stopped")
		s.power(301, "start", "running")
	})
	s.endsLike(want, 0, "small", s.small())

	for i, op := range []string{"image.pull", "talos.upgrade"} {
		s.restore(created)
		s.disturbed(op, "small", newer, s.rebootHost)
		s.endsLike(upgraded, i, "small", newer)
	}
}

// disturbed runs an up and disturbs it when the site has ended such an operation. Whether that up ends well
// is all the same.
func (s *site) disturbed(op, stack, file string, disturb func()) {
	s.t.Helper()

	s.must("true") // the lab runs
	seen := s.offset()
	cmd := s.command("pulumi", "up", "--stack", stack, "--config-file", file, "--yes", "--skip-preview", "--non-interactive")
	var out bytes.Buffer
	cmd.Dir, cmd.Stdout, cmd.Stderr = s.project, &out, &out
	require.NoError(s.t, cmd.Start())
	s.await(seen, op)
	disturb()
	started := time.Now()
	err := cmd.Wait()
	s.t.Logf("disturbed at %s; the run ended %s later: %v\n%s", op, time.Since(started).Round(time.Second), err, out.String())
}

// rebootHost takes the power from the host and gives it back when every VM is off.
func (s *site) rebootHost() {
	s.t.Helper()

	r := s.lab("fault", "add", "host-down", "host=pve1")
	require.Zero(s.t, r.code, r.all())
	assert.Eventually(s.t, func() bool {
		return !strings.Contains(s.lab("status", "--json").stdout, `"status": "running"`)
	}, time.Minute, 100*time.Millisecond, "every VM is off")
	r = s.lab("fault", "clear")
	require.Zero(s.t, r.code, r.all())
}
