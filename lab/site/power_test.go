// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package site_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/talos-proxmox/talos-proxmox/lab/site/guest"
)

func TestANewVMBootsItsCDAndThenItsDisk(t *testing.T) {
	t.Parallel()
	l := open(t)
	l.download(host, "local")
	l.guests.writes = []byte("installed")

	l.done(l.Create(host, 800, talos(), root))
	v, err := l.VM(host, 800)
	require.NoError(t, err)
	assert.Equal(t, "local-lvm:vm-800-disk-0,iothread=1,size=10G", v.Config["scsi0"])
	assert.Equal(t, "local-lvm:vm-800-cloudinit,media=cdrom", v.Config["ide2"])
	assert.Equal(t, "virtio=bc:24:11:00:00:01,bridge=vmbr200", v.Config["net0"])

	l.done(l.Start(host, 800, root))
	l.eventually("the guest boots", func() bool { return len(l.guests.booted()) == 1 })
	m := l.guests.booted()[0]
	assert.True(t, m.BootedFromCD, "the disk is blank")
	assert.Equal(t, "v1.12.4", m.CD.Talos)
	assert.Equal(t, "10.200.5.1/16", m.CloudInit.IPConfigs[0].IPv4.String())
	assert.Equal(t, "ctrl-00", m.CloudInit.Hostname)
	assert.Equal(t, guest.NIC{MAC: "bc:24:11:00:00:01", Bridge: "vmbr200", Model: "virtio"}, m.NICs[0])
	assert.Equal(t, int64(10)<<30, m.Disks[0].Size)

	l.guests.exits <- guest.ExitReboot
	l.eventually("the guest boots again", func() bool { return len(l.guests.booted()) == 2 })
	m = l.guests.booted()[1]
	assert.False(t, m.BootedFromCD, "the disk comes first and holds something now")
	assert.Equal(t, "scsi0", m.BootDisk.Device)
	assert.Equal(t, "installed", string(m.BootDisk.Load()))
}

func TestAVMWithoutMediumRunsWithoutGuest(t *testing.T) {
	t.Parallel()
	l := open(t)

	l.done(l.Create(host, 800, talos("ide0", "", "boot", ""), root))
	l.done(l.Start(host, 800, root))
	v, err := l.VM(host, 800)
	require.NoError(t, err)
	assert.Equal(t, "order=scsi0;ide2;net0", v.Config["boot"])
	assert.True(t, v.Running)
	assert.Equal(t, "no boot device", v.State)
	assert.Empty(t, l.guests.booted())

	l.fails("VM quit/powerdown failed - got timeout", first(l.Shutdown(host, 800, 5*time.Second, false, root)), nil)
	l.done(l.Shutdown(host, 800, 5*time.Second, true, root))
}

func first(upid string, _ error) string { return upid }

func TestEditsOfARunningVMWaitForItsNextPowerCycle(t *testing.T) {
	t.Parallel()
	l := open(t)
	l.download(host, "local")
	l.done(l.Create(host, 800, talos(), root))
	l.done(l.Start(host, 800, root))
	l.eventually("the guest boots", func() bool { return len(l.guests.booted()) == 1 })

	require.NoError(t, l.Update(host, 800, map[string]string{"memory": "4096", "name": "renamed"}, root))
	v, err := l.VM(host, 800)
	require.NoError(t, err)
	assert.Equal(t, "2048", v.Config["memory"])
	assert.Equal(t, "4096", v.Wanted["memory"])
	assert.Equal(t, "renamed", v.Config["name"], "a name is taken at once")
	assert.True(t, v.Pending)

	l.guests.exits <- guest.ExitReboot
	l.eventually("the guest boots again", func() bool { return len(l.guests.booted()) == 2 })
	assert.Equal(t, 2048, l.guests.booted()[1].MemoryMiB, "a reboot from inside keeps the machine")

	l.done(l.Reboot(host, 800, time.Minute, root))
	l.eventually("the guest boots anew", func() bool { return len(l.guests.booted()) == 3 })
	assert.Equal(t, 4096, l.guests.booted()[2].MemoryMiB)
	v, err = l.VM(host, 800)
	require.NoError(t, err)
	assert.False(t, v.Pending)
}

func TestRunningVMsComeBackAfterTheLabIsGone(t *testing.T) {
	t.Parallel()
	l := open(t)
	l.download(host, "local")
	l.guests.writes = []byte("installed")
	l.done(l.Create(host, 800, talos(), root))
	l.done(l.Create(host, 801, talos(), root))
	l.done(l.Start(host, 800, root))
	l.eventually("the guest boots", func() bool { return len(l.guests.booted()) == 1 })
	require.NoError(t, l.site.Close())

	l.start()
	l.eventually("the guest boots again", func() bool { return len(l.guests.booted()) == 2 })
	m := l.guests.booted()[1]
	assert.Equal(t, 800, m.VMID)
	assert.Equal(t, "installed", string(m.Disks[0].Load()))
	v, err := l.VM(host, 801)
	require.NoError(t, err)
	assert.False(t, v.Running, "this one was off")

	l.done(l.Stop(host, 800, root))
	require.NoError(t, l.site.Close())
	l.start()
	v, err = l.VM(host, 800)
	require.NoError(t, err)
	assert.False(t, v.Running, "a stopped VM stays stopped")
}

func TestPitfallBallooningTakesAGuestsMemory(t *testing.T) {
	t.Parallel()
	l := open(t)
	l.download(host, "local")
	boot := func(id int, params map[string]string) int {
		before := len(l.guests.booted())
		l.done(l.Create(host, id, params, root))
		l.done(l.Start(host, id, root))
		l.eventually("the guest boots", func() bool { return len(l.guests.booted()) == before+1 })

		return l.guests.booted()[before].MemoryMiB
	}

	assert.Equal(t, 4096, boot(800, talos("memory", "4096", "balloon", "1024")), "there is room")
	boot(801, talos("memory", "100000"))
	assert.Equal(t, 1024, boot(802, talos("memory", "4096", "balloon", "1024")), "less than Talos needs")
	assert.Equal(t, 4096, boot(803, talos("memory", "4096", "balloon", "0")), "ballooning is off")
}
