// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package site_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestAVMUsesAnothersDisk: what belongs to another VM outlives this one, and keeps it on its host.
func TestAVMUsesAnothersDisk(t *testing.T) {
	t.Parallel()
	l := open(t)
	l.download("alpha", "nas")
	l.done(l.Create("alpha", 900, map[string]string{"name": "data", "scsi1": "file=local-lvm:5,format=raw"}, root))
	node := func() map[string]string {
		return talos("net0", "model=virtio,bridge=vmbr0", "ide0", "file=nas:iso/talos.iso,media=cdrom",
			"scsi1", "file=local-lvm:vm-900-disk-0,format=raw,serial=data,size=5368709120")
	}
	l.done(l.Create("alpha", 800, node(), root))
	v, err := l.VM("alpha", 800)
	require.NoError(t, err)
	assert.Equal(t, "local-lvm:vm-900-disk-0,serial=data,size=5G", v.Config["scsi1"])

	l.done(l.Start("alpha", 800, root))
	l.eventually("the guest boots", func() bool { return len(l.guests.booted()) == 1 })
	require.Len(t, l.guests.booted()[0].Disks, 2)
	require.NoError(t, l.guests.booted()[0].Disks[1].Store([]byte("kept")))
	upid, err := l.Migrate("alpha", 800, "charlie", "", true, true, root)
	l.fails("migration aborted", upid, err)
	l.said("ERROR: Problem found while scanning volumes - can't migrate local disk 'local-lvm:vm-900-disk-0': "+
		"owned by other VM (owner = VM 900)", upid)

	l.done(l.Stop("alpha", 800, root))
	l.done(l.Delete("alpha", 800, true, root))
	l.done(l.Create("alpha", 800, node(), root))
	l.done(l.Start("alpha", 800, root))
	l.eventually("the guest boots again", func() bool { return len(l.guests.booted()) == 2 })
	assert.Equal(t, "kept", string(l.guests.booted()[1].Disks[1].Load()))
	assert.Empty(t, l.guests.booted()[1].Disks[0].Load(), "its own disk is new")

	l.done(l.Stop("alpha", 800, root))
	l.done(l.Delete("alpha", 900, true, root))
	upid, err = l.Start("alpha", 800, root)
	require.NoError(t, err)
	require.ErrorContains(t, l.site.Wait(t.Context(), upid), "vm-900-disk-0", "the disk went with its owner")
}
