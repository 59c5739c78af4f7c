// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package tests_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// examined decodes what `tpx doctor --json` reports.
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

// wrong returns the findings of checks that are more than warnings, but for those about the git host: the lab
// has a key of its own, and no repository for the shipped stacks' credentials.
func (e examined) wrong() []string {
	var all []string
	for _, f := range e.Findings {
		if !f.Warning && f.Check != "git" {
			all = append(all, f.Check+": "+f.Problem)
		}
	}

	return all
}

// TestDoctorBeforeTheFirstUp has doctor look at shipped stacks that lack nothing of the site, and at one of
// them with one thing wrong each.
func TestDoctorBeforeTheFirstUp(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	tpx := s.build("cmd/tpx")
	for stack, file := range map[string]string{"dev": "Pulumi.dev.yaml", "prod": "Pulumi.prod.yaml"} {
		s.create(stack)
		code, e := s.examine(tpx, stack, s.stackFile(file))
		assert.Equal(t, 1, code, "the lab's git host is another than the stack's")
		assert.Empty(t, e.wrong(), stack)
		for _, c := range e.Checks {
			assert.NotEqual(t, "skipped", c.State, "%s: %s: %s", stack, c.Check, c.Why)
		}
	}

	for name, c := range map[string]struct {
		edits []string
		want  string
	}{
		"another release":   {[]string{"    hosts:\n", "    version: 9\n    hosts:\n"}, "version: the hosts run Proxmox VE 8, and the stack says 9"},
		"another datastore": {[]string{"    datastore: local\n", "    datastore: nfs\n"}, `storage: host ryzen-proxmox has no datastore "nfs"`},
		"a datastore for disks": {[]string{"    datastore: local\n", "    datastore: local-lvm\n"},
			`storage: datastore "local-lvm" does not take the content "iso" (it takes images,rootdir)`},
		"a version that is not there": {[]string{"version: v1.12.4", "version: v1.12.99"}, "factory: the Image Factory has no image of this version"},
		"another bridge":              {[]string{"bridge: vmbr200", "bridge: vmbr777"}, `bridges: host ryzen-proxmox has no bridge "vmbr777"`},
		"a mapping":                   {[]string{"      cpu: 2\n", "      cpu: 2\n      gpu: {mapping: tesla}\n"}, `mappings: there is no mapping "tesla"`},
		"a chart that is not there":   {[]string{"version: 2.18.2", "version: 2.99.9"}, "charts: chart flux2 2.99.9"},
		"too many cores":              {[]string{"cpu: 2\n", "cpu: 512\n"}, "capacity: 512 cores, and host ryzen-proxmox has "},
		"too much memory":             {[]string{"memory: 2048", "memory: 2097152"}, "capacity: its nodes get 6291456 MiB of memory"},
	} {
		_, e := s.examine(tpx, "dev", s.stackFile("Pulumi.dev.yaml", c.edits...))
		assert.Contains(t, strings.Join(e.wrong(), "\n"), c.want, name)
	}

	r := s.try("env", "PROXMOX_VE_API_TOKEN=root@pam!lab=00000000-0000-0000-0000-00000000000f", tpx, "doctor", "dev", "--live")
	assert.Equal(t, 1, r.code)
	assert.Contains(t, r.stdout, "Proxmox VE does not take the credentials")
	r = s.try("env", "SSL_CERT_FILE=/dev/null", "SSL_CERT_DIR=/dev/null", tpx, "doctor", "dev", "--live")
	assert.Contains(t, r.stdout, "signed by an authority that this machine does not trust")

	s.up("dev", s.stackFile("Pulumi.dev.yaml"))
	_, e := s.examine(tpx, "dev", s.stackFile("Pulumi.dev.yaml"))
	assert.Empty(t, e.wrong(), "what the stack has itself is in nobody's way")
	_, e = s.examine(tpx, "dev", s.stackFile("Pulumi.dev.yaml", "ctrl-01: {role", "ctrl-11: {role"))
	assert.Contains(t, strings.Join(e.wrong(), "\n"), `vm-ids: 801 is the id of "ctrl-01" on host ryzen-proxmox`)
	assert.Contains(t, strings.Join(e.wrong(), "\n"), "addresses: something answers at 10.200.5.2 already")
}
