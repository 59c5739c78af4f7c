// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package site_test

import (
	"net"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/talos-proxmox/talos-proxmox/lab/fault"
	"github.com/talos-proxmox/talos-proxmox/lab/site"
	"github.com/talos-proxmox/talos-proxmox/lab/site/guest"
)

func (l *lab) breaks(k fault.Kind, with ...string) fault.Fault {
	l.Helper()
	m := map[string]string{}
	for i := 0; i+1 < len(with); i += 2 {
		m[with[i]] = with[i+1]
	}
	f, err := l.faults.Add(k, m)
	require.NoError(l, err)

	return f
}

// runs makes VM 800 and waits until what is in it runs.
func (l *lab) runs() {
	l.Helper()
	l.download(host, "local")
	l.done(l.Create(host, 800, talos("onboot", "1"), root))
	l.done(l.Start(host, 800, root))
	l.eventually("the guest boots", func() bool { return len(l.guests.booted()) == 1 })
}

func (l *lab) state() string {
	l.Helper()
	v, err := l.VM(host, 800)
	require.NoError(l, err)

	return v.State
}

func TestAFullDatastore(t *testing.T) {
	t.Parallel()
	l := open(t)
	l.breaks(fault.DatastoreFull, "storage", "local")
	upid, err := l.Download(host, site.DownloadRequest{Storage: "local", Content: "iso", Filename: "talos.iso", URL: l.url}, root)
	l.fails("write failed: No space left on device", upid, err)
	l.faults.Clear()
	l.download(host, "local")

	l.breaks(fault.DatastoreFull, "storage", "local-lvm", "host", host)
	upid, err = l.Create(host, 800, talos(), root)
	l.fails("unable to create VM 800 - lvcreate 'pve/vm-800-disk-0' error:   "+
		"Cannot create new thin volume, free space in thin pool pve/data reached threshold.", upid, err)
	assert.Empty(t, l.VMs(), "nothing is left behind")
	l.faults.Clear()
	l.done(l.Create(host, 800, talos(), root))
}

func TestATaskFailsOrHangs(t *testing.T) {
	t.Parallel()
	l := open(t)
	l.download(host, "local")

	l.breaks(fault.TaskError, "type", "qmcreate", "vm", "800")
	upid, err := l.Create(host, 800, talos(), root)
	l.fails("unable to create VM 800 - can't lock file '/var/lock/qemu-server/lock-800.conf' - got timeout", upid, err)
	assert.Empty(t, l.VMs(), "nothing is left behind")
	l.faults.Clear()
	l.done(l.Create(host, 800, talos(), root))

	l.breaks(fault.TaskError, "type", "qmstart", "vm", "ctrl-*", "count", "1")
	upid, err = l.Start(host, 800, root)
	l.fails("start failed: QEMU exited with code 1", upid, err)
	l.done(l.Start(host, 800, root))
	l.done(l.Stop(host, 800, root))

	hang := l.breaks(fault.TaskHang, "type", "qmstart")
	upid, err = l.Start(host, 800, root)
	require.NoError(t, err)
	l.eventually("the task hangs", func() bool { return l.faults.List()[0].Struck == 1 })
	task, err := l.site.Task(upid)
	require.NoError(t, err)
	assert.Empty(t, task.Exit, "it runs")
	require.NoError(t, l.faults.Remove(hang.ID))
	l.done(upid, nil)
}

func TestADownloadThatGoesWrong(t *testing.T) {
	t.Parallel()
	l := open(t)
	request := site.DownloadRequest{Storage: "local", Content: "iso", Filename: "talos.iso", URL: l.url}

	l.breaks(fault.DownloadCut, "count", "1")
	upid, err := l.Download(host, request, root)
	l.fails("download failed: exit code 4", upid, err)

	l.breaks(fault.WrongChecksum, "host", host, "count", "1")
	request.ChecksumAlgorithm, request.Checksum = "md5", "00000000000000000000000000000000"
	upid, err = l.Download(host, request, root)
	require.NoError(t, err)
	require.ErrorContains(t, l.site.Wait(t.Context(), upid), "checksum mismatch: got '")

	volumes, err := l.Content(host, "local", "iso")
	require.NoError(t, err)
	assert.Empty(t, volumes, "nothing is kept")
	l.download(host, "local")
}

func TestAHostWithoutPower(t *testing.T) {
	t.Parallel()
	l := open(t)
	l.runs()

	down := l.breaks(fault.HostDown, "host", host)
	l.eventually("its VMs stop", func() bool { return l.state() == "off" })
	l.fails("host "+host+" has no power", first(l.Start(host, 800, root)), nil)
	assert.False(t, l.HostUp(host))
	assert.True(t, l.HostUp("alpha"))
	_, err := l.site.Net().DialContext(t.Context(), "tcp", net.JoinHostPort(host+".example.com", "8006"))
	require.ErrorIs(t, err, syscall.EHOSTUNREACH)

	require.NoError(t, l.faults.Remove(down.ID))
	l.eventually("what starts at boot starts", func() bool { return len(l.guests.booted()) == 2 && l.state() == "guest" })
}

func TestANodeThatIsLostComesBack(t *testing.T) {
	t.Parallel()
	l := open(t)
	l.runs()

	lost := l.breaks(fault.NodeLost, "node", "10.200.5.1")
	l.eventually("it hangs", func() bool { return l.state() == "hangs" })
	v, err := l.VM(host, 800)
	require.NoError(t, err)
	assert.True(t, v.Running, "the VM is on")
	l.fails("VM quit/powerdown failed - got timeout", first(l.Shutdown(host, 800, 1, false, root)), nil)

	require.NoError(t, l.faults.Remove(lost.ID))
	l.eventually("it boots again, and has not heard of the shutdown", func() bool {
		return len(l.guests.booted()) == 2 && l.state() == "guest"
	})
}

func TestANodeThatDoesNotReturn(t *testing.T) {
	t.Parallel()
	l := open(t)
	l.guests.writes = []byte("installed")
	none := l.breaks(fault.NoReturn, "node", "ctrl-00")
	l.runs()

	l.guests.exits <- guest.ExitReboot
	l.eventually("it hangs at the boot from its disk", func() bool { return l.state() == "hangs" })
	assert.Len(t, l.guests.booted(), 1)

	require.NoError(t, l.faults.Remove(none.ID))
	l.eventually("it boots", func() bool { return len(l.guests.booted()) == 2 })
}
