// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package tests_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestOtherFlagsLoseNoMember tells the engine to look at one VM only, to leave out what guards it, and to go on after
// errors. No VM is deleted whose node was not asked to leave, and no configuration goes past its guard.
func TestOtherFlagsLoseNoMember(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	c := s.up("small", s.of([]string{"cp-1", "cp-2", "cp-3", "worker-4"}))
	all := []string{"cp-1", "cp-2", "cp-3", "worker-4"}
	up := func(file string, flags ...string) result {
		return s.try(append([]string{"pulumi", "up", "--stack", "small", "--config-file", file, "--yes", "--skip-preview", "--non-interactive"}, flags...)...)
	}
	target := func(name string) string { return "--target=" + s.urn("small", name) }
	replaced := s.of(all, "readyTimeout: 4m", "readyTimeout: 4m\n    replace: {cp-3: 1}")
	without := s.of([]string{"cp-1", "cp-2", "cp-3"})
	encrypted := s.of(all, "version: v1.35.0", "version: v1.35.0\n    etcdEncryption: aescbc")

	started := time.Now()
	for _, tried := range []struct {
		file, flag, says string
	}{
		{replaced, target("small-cp-3-vm"), "node cp-3: its VM would be replaced, and the node was not asked to leave"},
		{replaced, "--exclude=" + s.urn("small", "small-machines"), "node cp-3: its VM would be replaced, and the node was not asked to leave"},
		{without, "--exclude=" + s.urn("small", "small-members"), "worker-4: gone from the stack file, and not retired: nothing is deleted"},
		{encrypted, target("small-cp-1"), "kubernetes.etcdEncryption: was secretbox, is now aescbc"},
	} {
		r := up(tried.file, tried.flag)
		assert.NotZero(t, r.code, tried)
		assert.Contains(t, r.all(), tried.says)
		assert.Contains(t, r.all(), "this run leaves out a step that this edit needs (--target, --exclude)")
	}
	assert.Empty(t, s.trace(started).of("pve.qmdestroy"))
	c.hasNodes(all...)

	added := s.lab("fault", "add", "api-error", "api=talos", "node=cp-3", "call=ApplyConfiguration")
	require.Zero(t, added.code, added.all())
	r := up(s.of([]string{"cp-3"}, "cpu: 2", "cpu: 2\n      labels: {a: b}", "applyTimeout: 2m", "applyTimeout: 10s"), "--continue-on-error")
	assert.NotZero(t, r.code)
	assert.Contains(t, r.all(), "it did not take its configuration: it did not say within 10s what that would do")
	assert.Empty(t, s.trace(started).of("pve.qmdestroy"))
	c.hasNodes(all...)
}
