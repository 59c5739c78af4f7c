// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package tests_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// examined is what `tpx doctor --json` tells.
type examined struct {
	Checks []struct{ Check, State, Why string }
	// Findings with their settings.
	Findings []struct {
		Check, Setting, Problem, Remedy string
		Warning                         bool
	}
}

// examine runs tpx doctor --live on a stack file and returns its exit code and report.
func (s *site) examine(tpx, stack, file string) (int, examined) {
	s.t.Helper()
	r := s.try(tpx, "doctor", stack, "--config-file", file, "--live", "--json", "--timeout", "20s")
	var e examined
	require.NoError(s.t, json.Unmarshal([]byte(r.stdout), &e), r.all())

	return r.code, e
}

// TestDoctorBeforeTheFirstUp has doctor look at shipped stacks that lack nothing, and at the same stacks with
// one thing wrong each.
func TestDoctorBeforeTheFirstUp(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	tpx := s.build("cmd/tpx")
	for stack, file := range map[string]string{"dev": "Pulumi.dev.yaml", "prod": "Pulumi.prod.yaml"} {
		s.create(stack)
		code, e := s.examine(tpx, stack, s.stackFile(file))
		assert.Zero(t, code, "%s: %v", stack, e.Findings)
		for _, c := range e.Checks {
			assert.NotEqual(t, "skipped", c.State, "%s: %s: %s", stack, c.Check, c.Why)
		}
	}

	for name, c := range map[string]struct {
		edits       []string
		check, want string
	}{
		"another release":        {[]string{"    hosts:\n", "    version: 9\n    hosts:\n"}, "version", "the hosts run Proxmox VE 8, and the stack says 9"},
		"another datastore":      {[]string{"    datastore: local\n", "    datastore: nfs\n"}, "storage", `has no datastore "nfs"`},
		"too much memory":        {[]string{"memory: 2048", "memory: 4194304"}, "capacity", "its nodes get"},
		"the host's own address": {[]string{"vip: 10.200.5.10", "vip: 10.200.5.4"}, "", ""},
	} {
		code, e := s.examine(tpx, "dev", s.stackFile("Pulumi.dev.yaml", c.edits...))
		if c.check == "" {
			assert.Zero(t, code, "%s: %v", name, e.Findings)

			continue
		}
		assert.Equal(t, 1, code, name)
		found := false
		for _, f := range e.Findings {
			found = found || f.Check == c.check && assert.Contains(t, f.Problem, c.want, name)
		}
		assert.True(t, found, "%s: %v", name, e.Findings)
	}
}
