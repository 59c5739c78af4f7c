// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package site_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/talos-proxmox/talos-proxmox/lab/fault"
	"github.com/talos-proxmox/talos-proxmox/lab/image"
	"github.com/talos-proxmox/talos-proxmox/lab/site"
)

const root = "root@pam"

// guests are operating systems under a test's control: each boot waits for what the test decides.
type guests struct {
	mu     sync.Mutex
	boots  []*site.Machine
	exits  chan site.Exit
	obeys  bool // powers off when asked to
	writes []byte
}

func (g *guests) make(m *site.Machine) site.Guest {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.boots = append(g.boots, m)

	return guest{g}
}

func (g *guests) booted() []*site.Machine {
	g.mu.Lock()
	defer g.mu.Unlock()

	return append([]*site.Machine(nil), g.boots...)
}

type guest struct{ *guests }

func (g guest) Run(ctx context.Context, m *site.Machine) site.Exit {
	if g.writes != nil {
		if err := m.Disks[0].Store(g.writes); err != nil {
			return site.ExitHalt
		}
	}
	ask := m.ShutdownRequested
	if !g.obeys {
		ask = nil
	}
	select {
	case <-ctx.Done():
		return site.ExitPowerOff
	case <-ask:
		return site.ExitPowerOff
	case e := <-g.exits:
		return e
	}
}

type lab struct {
	*testing.T
	*site.Cluster
	site   *site.Site
	guests *guests
	dir    string
	url    string // of an image
	faults *fault.Set
}

func open(t *testing.T) *lab {
	t.Helper()

	iso, err := image.Encode(image.Image{Talos: "v1.12.4", Platform: "nocloud", Arch: "amd64", Kind: image.KindISO})
	require.NoError(t, err)
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/talos.iso" {
			http.NotFound(w, r)

			return
		}
		_, _ = w.Write(iso)
	}))
	t.Cleanup(web.Close)

	l := &lab{T: t, dir: t.TempDir(), url: web.URL + "/talos.iso", guests: &guests{exits: make(chan site.Exit), obeys: true}}
	l.faults = fault.New(site.NewTrace(nil), nil)
	l.start()

	return l
}

func (l *lab) start() {
	l.Helper()

	s, err := site.Open(site.Options{Dir: l.dir, Clock: site.Clock{Speed: 1000}, Guest: l.guests.make, HTTP: http.DefaultClient, Faults: l.faults})
	require.NoError(l, err)
	l.Cleanup(func() { _ = s.Close() })
	l.site, l.Cluster = s, s.Clusters()[0]
	s.Resume()
}

// done waits for a task that must succeed; called with the results of what starts it.
func (l *lab) done(upid string, err error) {
	l.Helper()
	require.NoError(l, err)
	require.NoError(l, l.site.Wait(l.Context(), upid))
}

// fails waits for a task, or its start, to fail with exactly that text.
func (l *lab) fails(want string, upid string, err error) {
	l.Helper()
	if err == nil {
		err = l.site.Wait(l.Context(), upid)
	}
	require.EqualError(l, err, want)
}

func (l *lab) download(host, storage string) {
	l.Helper()
	upid, err := l.Download(host, site.DownloadRequest{Storage: storage, Content: "iso", Filename: "talos.iso", URL: l.url}, root)
	l.done(upid, err)
}

// talos is a VM as the project makes them.
func talos(changes ...string) map[string]string {
	m := map[string]string{
		"name": "ctrl-00", "cores": "2", "memory": "2048", "cpu": "host", "machine": "q35", "scsihw": "virtio-scsi-single",
		"boot": "order=scsi0;ide0", "scsi0": "file=local-lvm:10,format=raw,iothread=1", "ide0": "file=local:iso/talos.iso,media=cdrom",
		"ide2": "file=local-lvm:cloudinit,media=cdrom", "ipconfig0": "gw=10.200.0.1,ip=10.200.5.1/16",
		"net0": "model=virtio,bridge=vmbr200,macaddr=bc:24:11:00:00:01", "agent": "enabled=1",
	}
	for i := 0; i+1 < len(changes); i += 2 {
		if changes[i+1] == "" {
			delete(m, changes[i])
		} else {
			m[changes[i]] = changes[i+1]
		}
	}

	return m
}

func (l *lab) eventually(what string, holds func() bool) {
	l.Helper()
	require.Eventually(l, holds, 10*time.Second, 5*time.Millisecond, what)
}

const pve = "ryzen-proxmox"

func TestANewVMBootsItsCDAndThenItsDisk(t *testing.T) {
	t.Parallel()
	l := open(t)
	l.download(pve, "local")
	l.guests.writes = []byte("installed")

	l.done(l.Create(pve, 800, talos(), root))
	v, err := l.VM(pve, 800)
	require.NoError(t, err)
	assert.Equal(t, "local-lvm:vm-800-disk-0,iothread=1,size=10G", v.Config["scsi0"])
	assert.Equal(t, "local-lvm:vm-800-cloudinit,media=cdrom,size=4M", v.Config["ide2"])
	assert.Equal(t, "virtio=BC:24:11:00:00:01,bridge=vmbr200", v.Config["net0"])

	l.done(l.Start(pve, 800, root))
	l.eventually("the guest boots", func() bool { return len(l.guests.booted()) == 1 })
	m := l.guests.booted()[0]
	assert.True(t, m.BootedFromCD, "the disk is blank")
	assert.Equal(t, "v1.12.4", m.CD.Talos)
	assert.Equal(t, "10.200.5.1/16", m.CloudInit.IPConfigs[0].IPv4.String())
	assert.Equal(t, "ctrl-00", m.CloudInit.Hostname)
	assert.Equal(t, site.NIC{MAC: "BC:24:11:00:00:01", Bridge: "vmbr200", Model: "virtio"}, m.NICs[0])
	assert.Equal(t, int64(10)<<30, m.Disks[0].Size)

	l.guests.exits <- site.ExitReboot
	l.eventually("the guest boots again", func() bool { return len(l.guests.booted()) == 2 })
	m = l.guests.booted()[1]
	assert.False(t, m.BootedFromCD, "the disk comes first and holds something now")
	assert.Equal(t, "scsi0", m.BootDisk.Device)
	assert.Equal(t, "installed", string(m.BootDisk.Load()))
}

func TestAVMWithoutMediumRunsWithoutGuest(t *testing.T) {
	t.Parallel()
	l := open(t)

	l.done(l.Create(pve, 800, talos("ide0", "", "boot", ""), root))
	l.done(l.Start(pve, 800, root))
	v, err := l.VM(pve, 800)
	require.NoError(t, err)
	assert.Equal(t, "order=scsi0;net0", v.Config["boot"])
	assert.True(t, v.Running)
	assert.Equal(t, "no boot device", v.State)
	assert.Empty(t, l.guests.booted())

	l.fails("VM quit/powerdown failed - got timeout", first(l.Shutdown(pve, 800, 5*time.Second, false, root)), nil)
	l.done(l.Shutdown(pve, 800, 5*time.Second, true, root))
}

func first(upid string, _ error) string { return upid }

func TestCreateRefusesWhatProxmoxRefuses(t *testing.T) {
	t.Parallel()
	l := open(t)
	l.download(pve, "local")
	l.done(l.Create(pve, 801, talos(), root))

	for name, c := range map[string]struct {
		host   string
		id     int
		params map[string]string
		user   string
		want   string
	}{
		"id taken on another host": {
			"alpha", 801, talos(), root,
			"unable to create VM 801 - VM 801 already exists on node 'ryzen-proxmox'",
		},
		"qcow2 on LVM": {
			pve, 802, talos("scsi0", "file=local-lvm:10,format=qcow2"), root,
			"unable to create VM 802 - unsupported format 'qcow2' at /usr/share/perl5/PVE/Storage/LvmThinPlugin.pm line 87.",
		},
		"disk on a storage for files": {
			pve, 803, talos("scsi0", "file=local:10"), root,
			"Parameter verification failed. (storage: storage 'local' does not support vm images)",
		},
		"storage of other hosts": {
			pve, 804, talos("scsi0", "file=nas:10"), root,
			"storage 'nas' is not available on node 'ryzen-proxmox'",
		},
		"storage unknown": {pve, 805, talos("scsi0", "file=fast:10"), root, "storage 'fast' does not exist"},
		"image that is not there": {
			"alpha", 806, talos("net0", ""), root,
			"unable to create VM 806 - volume 'local:iso/talos.iso' does not exist",
		},
		"option unknown": {
			pve, 807, talos("colour", "red"), root,
			"Parameter verification failed. (colour: property is not defined in schema and the schema does not allow additional properties)",
		},
		"name": {
			pve, 808, talos("name", "ctrl_00"), root,
			"Parameter verification failed. (name: invalid format - value does not look like a valid DNS name)",
		},
		"raw PCI device by token": {
			pve, 809, talos("hostpci0", "host=0000:01:00.0"), "root@pam!lab",
			"only root can set 'hostpci0' config for non-mapped devices",
		},
		"small id": {pve, 99, talos(), root, "Parameter verification failed. (vmid: invalid format - value does not look like a valid VM ID)"},
	} {
		t.Run(name, func(t *testing.T) {
			upid, err := l.Create(c.host, c.id, c.params, c.user)
			l.fails(c.want, upid, err)
			for _, v := range l.VMs() {
				assert.Truef(t, v.ID == 801, "VM %d must not be left behind", v.ID)
			}
		})
	}
}

func TestStartRefusesWhatQEMURefuses(t *testing.T) {
	t.Parallel()
	l := open(t)
	l.download(pve, "local")

	for name, c := range map[string]struct {
		id     int
		params map[string]string
		want   string
	}{
		"bridge":     {810, talos("net0", "model=virtio,bridge=vmbr7"), "bridge 'vmbr7' does not exist"},
		"too big":    {811, talos("memory", "300000"), "start failed: QEMU exited with code 1: cannot set up guest memory 'pc.ram': Cannot allocate memory"},
		"cores":      {812, talos("cores", "64"), "MAX 32 vcpus allowed per VM on this node"},
		"ide on q35": {813, talos("ide3", "file=none,media=cdrom"), "start failed: QEMU exited with code 1: Can't create IDE unit 1, bus supports only 1 units"},
		"template":   {814, talos("template", "1"), "you can't start a vm if it's a template"},
	} {
		t.Run(name, func(t *testing.T) {
			l.done(l.Create(pve, c.id, c.params, root))
			upid, err := l.Start(pve, c.id, root)
			l.fails(c.want, upid, err)
		})
	}

	l.done(l.Create(pve, 815, talos(), root))
	l.done(l.DeleteVolume(pve, "local", "local:iso/talos.iso", root))
	upid, err := l.Start(pve, 815, root)
	l.fails("volume 'local:iso/talos.iso' does not exist", upid, err)
}

func TestEditsOfARunningVMWaitForItsNextPowerCycle(t *testing.T) {
	t.Parallel()
	l := open(t)
	l.download(pve, "local")
	l.done(l.Create(pve, 800, talos(), root))
	l.done(l.Start(pve, 800, root))
	l.eventually("the guest boots", func() bool { return len(l.guests.booted()) == 1 })

	require.NoError(t, l.Update(pve, 800, map[string]string{"memory": "4096", "name": "renamed"}, root))
	v, err := l.VM(pve, 800)
	require.NoError(t, err)
	assert.Equal(t, "2048", v.Config["memory"])
	assert.Equal(t, "4096", v.Wanted["memory"])
	assert.Equal(t, "renamed", v.Config["name"], "a name is taken at once")
	assert.True(t, v.Pending)

	l.guests.exits <- site.ExitReboot
	l.eventually("the guest boots again", func() bool { return len(l.guests.booted()) == 2 })
	assert.Equal(t, 2048, l.guests.booted()[1].MemoryMiB, "a reboot from inside keeps the machine")

	l.done(l.Reboot(pve, 800, time.Minute, root))
	l.eventually("the guest boots anew", func() bool { return len(l.guests.booted()) == 3 })
	assert.Equal(t, 4096, l.guests.booted()[2].MemoryMiB)
	v, err = l.VM(pve, 800)
	require.NoError(t, err)
	assert.False(t, v.Pending)
}

func TestDisksGrowAndNeverShrink(t *testing.T) {
	t.Parallel()
	l := open(t)
	l.done(l.Create(pve, 800, talos("ide0", ""), root))

	l.done(l.Resize(pve, 800, "scsi0", "20G", root))
	l.done(l.Resize(pve, 800, "scsi0", "+1G", root))
	upid, err := l.Resize(pve, 800, "scsi0", "10G", root)
	l.fails("shrinking disks is not supported", upid, err)
	upid, err = l.Resize(pve, 800, "scsi5", "10G", root)
	l.fails("disk 'scsi5' does not exist", upid, err)
	v, err := l.VM(pve, 800)
	require.NoError(t, err)
	assert.Equal(t, "local-lvm:vm-800-disk-0,iothread=1,size=21G", v.Config["scsi0"])
}

func TestDeleteTakesEverythingAndRefusesWhatIsInUse(t *testing.T) {
	t.Parallel()
	l := open(t)
	l.download(pve, "local")
	l.done(l.Create(pve, 800, talos("protection", "1"), root))

	_, err := l.Delete(pve, 800, true, root)
	require.EqualError(t, err, "can't remove VM 800 - protection mode enabled")
	require.NoError(t, l.Update(pve, 800, map[string]string{"protection": "0"}, root))
	l.done(l.Start(pve, 800, root))
	_, err = l.Delete(pve, 800, true, root)
	require.EqualError(t, err, "VM 800 is running - destroy failed")

	l.done(l.Stop(pve, 800, root))
	l.done(l.Delete(pve, 800, true, root))
	volumes, err := l.Content(pve, "local-lvm", "")
	require.NoError(t, err)
	assert.Empty(t, volumes)
	_, err = l.VM(pve, 800)
	require.EqualError(t, err, "Configuration file 'nodes/ryzen-proxmox/qemu-server/800.conf' does not exist")
}

func TestRunningVMsComeBackAfterTheLabIsGone(t *testing.T) {
	t.Parallel()
	l := open(t)
	l.download(pve, "local")
	l.guests.writes = []byte("installed")
	l.done(l.Create(pve, 800, talos(), root))
	l.done(l.Create(pve, 801, talos(), root))
	l.done(l.Start(pve, 800, root))
	l.eventually("the guest boots", func() bool { return len(l.guests.booted()) == 1 })
	require.NoError(t, l.site.Close())

	l.start()
	l.eventually("the guest boots again", func() bool { return len(l.guests.booted()) == 2 })
	m := l.guests.booted()[1]
	assert.Equal(t, 800, m.VMID)
	assert.Equal(t, "installed", string(m.Disks[0].Load()))
	v, err := l.VM(pve, 801)
	require.NoError(t, err)
	assert.False(t, v.Running, "this one was off")

	l.done(l.Stop(pve, 800, root))
	require.NoError(t, l.site.Close())
	l.start()
	v, err = l.VM(pve, 800)
	require.NoError(t, err)
	assert.False(t, v.Running, "a stopped VM stays stopped")
}

func TestMigrationNeedsSharedImages(t *testing.T) {
	t.Parallel()
	l := open(t)
	l.download("alpha", "local")
	l.download("alpha", "nas")
	l.done(l.Create("alpha", 800, talos("net0", "model=virtio,bridge=vmbr0"), root))

	upid, err := l.Migrate("alpha", 800, "charlie", "", false, true, root)
	l.fails("Problem found while scanning volumes - can't migrate local disk 'local:iso/talos.iso': local cdrom image", upid, err)

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

	l.done(l.Clone("alpha", 800, 900, map[string]string{"name": "copy", "target": "charlie"}, root))
	c, err := l.VM("charlie", 900)
	require.NoError(t, err)
	assert.Equal(t, "nas:900/vm-900-disk-0.raw,iothread=1,size=10G", c.Config["scsi0"])
	assert.NotEqual(t, v.Config["net0"], c.Config["net0"], "a copy has addresses of its own")
}

func TestDownloads(t *testing.T) {
	t.Parallel()
	l := open(t)

	ask := func(change func(*site.DownloadRequest)) site.DownloadRequest {
		r := site.DownloadRequest{Storage: "local", Content: "iso", Filename: "talos.iso", URL: l.url}
		change(&r)

		return r
	}
	for name, c := range map[string]struct {
		request site.DownloadRequest
		want    string
	}{
		"not found": {
			ask(func(r *site.DownloadRequest) { r.URL += "x" }),
			"download failed: server answered '404 Not Found' for " + l.url + "x",
		},
		"checksum": {
			ask(func(r *site.DownloadRequest) { r.Checksum, r.ChecksumAlgorithm = "00", "md5" }),
			"checksum mismatch: got 'f5c3e0eb6dd1f3a55d9855c9769ff6ea' != expect '00'",
		},
		"extension": {
			ask(func(r *site.DownloadRequest) { r.Filename = "talos.raw" }),
			"Parameter verification failed. (filename: wrong file extension)",
		},
		"content type": {
			ask(func(r *site.DownloadRequest) { r.Storage = "local-lvm" }),
			"Parameter verification failed. (storage: storage 'local-lvm' is not configured for content-type 'iso')",
		},
		"not compressed": {
			ask(func(r *site.DownloadRequest) { r.Compression = "gz" }),
			"decompression failed: gzip: not in gzip format: gzip: invalid header",
		},
		"xz": {
			ask(func(r *site.DownloadRequest) { r.Compression = "xz" }),
			"Parameter verification failed. (compression: value 'xz' does not match the regex pattern)",
		},
	} {
		t.Run(name, func(t *testing.T) {
			upid, err := l.Download(pve, c.request, root)
			l.fails(c.want, upid, err)
		})
	}

	l.download(pve, "local")
	upid, err := l.Download(pve, ask(func(*site.DownloadRequest) {}), root)
	l.fails("refusing to override existing file '/var/lib/vz/template/iso/talos.iso'", upid, err)
}

func TestHostsComeIntoBeingWhenNamed(t *testing.T) {
	t.Parallel()
	l := open(t)
	require.NoError(t, l.CheckHost("my-server"))
	storages, err := l.Storages("my-server")
	require.NoError(t, err)
	assert.Len(t, storages, 2)

	d := site.DefaultDefinition()
	d.OpenHosts = false
	s, err := site.Open(site.Options{Dir: t.TempDir(), Definition: &d})
	require.NoError(t, err)
	defer func() { assert.NoError(t, s.Close()) }()
	require.EqualError(t, s.Clusters()[0].CheckHost("my-server"),
		"hostname lookup 'my-server' failed - failed to get address info for: my-server: Name or service not known")
}
