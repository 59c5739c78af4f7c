// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package site_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestDisksGrowAndNeverShrink(t *testing.T) {
	t.Parallel()
	l := open(t)
	l.done(l.Create(host, 800, talos("ide0", ""), root))

	l.done(l.Resize(host, 800, "scsi0", "20G", root))
	l.done(l.Resize(host, 800, "scsi0", "+1G", root))
	upid, err := l.Resize(host, 800, "scsi0", "10G", root)
	l.fails("shrinking disks is not supported", upid, err)
	upid, err = l.Resize(host, 800, "scsi5", "10G", root)
	l.fails("disk 'scsi5' does not exist", upid, err)
	v, err := l.VM(host, 800)
	require.NoError(t, err)
	assert.Equal(t, "local-lvm:vm-800-disk-0,iothread=1,size=21G", v.Config["scsi0"])
}

func TestMigrationNeedsSharedImages(t *testing.T) {
	t.Parallel()
	l := open(t)
	l.download("alpha", "local")
	l.download("alpha", "nas")
	l.done(l.Create("alpha", 800, talos("net0", "model=virtio,bridge=vmbr0"), root))

	upid, err := l.Migrate("alpha", 800, "charlie", "", false, true, root)
	l.fails("migration aborted", upid, err)
	l.said("ERROR: Problem found while scanning volumes - can't migrate local disk 'local:iso/talos.iso': local cdrom image", upid)

	require.NoError(t, l.Update("alpha", 800, map[string]string{"ide0": "file=nas:iso/talos.iso,media=cdrom"}, root))
	l.done(l.Start("alpha", 800, root))
	l.done(l.Migrate("alpha", 800, "charlie", "", true, true, root))
	v, err := l.VM("charlie", 800)
	require.NoError(t, err)
	assert.True(t, v.Running)
	assert.Len(t, l.guests.booted(), 1, "the guest goes on")
}

func TestMovedAndClonedDisksKeepWhatIsOnThem(t *testing.T) {
	t.Parallel()
	l := open(t)
	l.download("alpha", "local")
	l.guests.writes = []byte("installed")
	l.done(l.Create("alpha", 800, talos("net0", "model=virtio,bridge=vmbr0"), root))
	l.done(l.Start("alpha", 800, root))
	l.eventually("the guest boots", func() bool { return len(l.guests.booted()) == 1 && l.guests.booted()[0].Disks[0].Load() != nil })

	_, err := l.MoveDisk("alpha", 800, "scsi0", "local-lvm", "", true, root)
	require.EqualError(t, err, "you can't move to the same storage with same format")
	l.done(l.MoveDisk("alpha", 800, "scsi0", "nas", "", true, root))
	assert.Equal(t, "installed", string(l.guests.booted()[0].Disks[0].Load()), "a running guest's disk follows")
	v, err := l.VM("alpha", 800)
	require.NoError(t, err)
	assert.Equal(t, "nas:800/vm-800-disk-0.raw,iothread=1,size=10G", v.Config["scsi0"])

	_, err = l.Clone("alpha", 800, 900, map[string]string{"target": "charlie"}, root)
	require.EqualError(t, err, "can't clone VM to node 'charlie' (VM uses local storage)")
	require.NoError(t, l.Update("alpha", 800, map[string]string{"ide0": "none,media=cdrom", "ide2": "none,media=cdrom"}, root))
	l.done(l.Clone("alpha", 800, 900, map[string]string{"name": "copy", "target": "charlie"}, root))
	c, err := l.VM("charlie", 900)
	require.NoError(t, err)
	assert.Equal(t, "nas:900/vm-900-disk-0.raw,iothread=1,size=10G", c.Config["scsi0"])
	assert.NotEqual(t, v.Config["net0"], c.Config["net0"], "a copy has addresses of its own")
}
