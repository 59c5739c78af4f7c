// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package tests_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// mounts returns the UUIDs of the file system of that label that a VM used since a moment.
func (s *site) mounts(label string, since time.Time) []string {
	s.t.Helper()
	var found []string
	for _, e := range s.trace(since).of("volume.mount") {
		if e.Attrs["volume"] == label {
			found = append(found, e.Attrs["uuid"])
		}
	}

	return found
}

// TestDataDisksOutliveTheirNode rebuilds a worker, by the stack's own key and by force: the disk that is
// kept still holds its file system, and the other one is new.
func TestDataDisksOutliveTheirNode(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	const worker = `    work-00:
      role: worker
      vmId: 900
      dataVmId: 990
      networks: {lan: {address: 10.200.6.1}}
      disks:
        kept: {size: 5, unitNumber: 1, mountpoint: /var/mnt/kept, keepOnRebuild: true}
        fresh: {size: 5, unitNumber: 2, mountpoint: /var/mnt/fresh}
`
	started := time.Now()
	dev := s.up("dev", s.alone(worker))
	kept, fresh := s.mounts("u-kept", started), s.mounts("u-fresh", started)
	require.NotEmpty(t, kept)
	require.NotEmpty(t, fresh)
	dev.isSettled()

	for _, rebuild := range []func(){
		func() { dev.edit(s.alone(worker, "  talos-proxmox:lifecycle:\n    replace: {work-00: 1}\n")) },
		func() {
			s.must("pulumi", "up", "--stack", "dev", "--config-file", dev.file, "--yes", "--skip-preview", "--non-interactive",
				"--replace", dev.urn("proxmoxve:VM/virtualMachine:VirtualMachine", "talos-dev-work-00-vm"))
		},
	} {
		rebuilt := time.Now()
		rebuild()
		require.NotEmpty(t, s.mounts("u-kept", rebuilt), "the node was rebuilt")
		for _, uuid := range s.mounts("u-kept", rebuilt) {
			assert.Equal(t, kept[0], uuid, "what is kept is still there")
		}
		assert.NotContains(t, s.mounts("u-fresh", rebuilt), fresh[0], "what is not kept is new")
	}
	dev.hasNodes("ctrl-00", "work-00")
	dev.isSettled()

	dev.destroy()
	assert.Empty(t, s.status().VMs, "the disks go with the stack")
}

// urn returns a resource's name in the state.
func (r *running) urn(kind, name string) string {
	r.t.Helper()
	for _, line := range strings.Split(r.must("pulumi", "stack", "export", "--stack", r.stack).stdout, `"`) {
		if strings.HasPrefix(line, "urn:pulumi:") && strings.HasSuffix(line, kind+"::"+name) {
			return line
		}
	}
	require.Failf(r.t, "not in the state", "%s %s", kind, name)

	return ""
}
