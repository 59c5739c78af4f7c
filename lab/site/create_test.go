// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package site_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/talos-proxmox/talos-proxmox/lab/site"
)

func TestCreateRefusesWhatProxmoxRefuses(t *testing.T) {
	t.Parallel()
	l := open(t)
	l.download(host, "local")
	l.done(l.Create(host, 801, talos(), root))

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
			host, 802, talos("scsi0", "file=local-lvm:10,format=qcow2"), root,
			"unable to create VM 802 - unsupported format 'qcow2' at /usr/share/perl5/PVE/Storage/LvmThinPlugin.pm line 87.",
		},
		"disk on a storage for files": {
			host, 803, talos("scsi0", "file=local:10"), root,
			"Parameter verification failed. (storage: storage 'local' does not support vm images)",
		},
		"storage of other hosts": {
			host, 804, talos("scsi0", "file=nas:10"), root,
			"storage 'nas' is not available on node 'ryzen-proxmox'",
		},
		"storage unknown": {host, 805, talos("scsi0", "file=fast:10"), root, "storage 'fast' does not exist"},
		"image that is not there": {
			"alpha", 806, talos("net0", ""), root,
			"unable to create VM 806 - volume 'local:iso/talos.iso' does not exist",
		},
		"option unknown": {
			host, 807, talos("colour", "red"), root,
			"Parameter verification failed. (colour: property is not defined in schema and the schema does not allow additional properties)",
		},
		"name": {
			host, 808, talos("name", "ctrl_00"), root,
			"Parameter verification failed. (name: invalid format - value does not look like a valid DNS name)",
		},
		"raw PCI device by token": {
			host, 809, talos("hostpci0", "host=0000:01:00.0"), "root@pam!lab",
			"only root can set 'hostpci0' config for non-mapped devices",
		},
		"small id": {host, 99, talos(), root, "Parameter verification failed. (vmid: invalid format - value does not look like a valid VM ID)"},
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
	l.download(host, "local")

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
			l.done(l.Create(host, c.id, c.params, root))
			upid, err := l.Start(host, c.id, root)
			l.fails(c.want, upid, err)
		})
	}

	l.done(l.Create(host, 815, talos(), root))
	l.done(l.DeleteVolume(host, "local", "local:iso/talos.iso", root))
	upid, err := l.Start(host, 815, root)
	l.fails("volume 'local:iso/talos.iso' does not exist", upid, err)
}

func TestDeleteTakesEverythingAndRefusesWhatIsInUse(t *testing.T) {
	t.Parallel()
	l := open(t)
	l.download(host, "local")
	l.done(l.Create(host, 800, talos("protection", "1"), root))

	_, err := l.Delete(host, 800, true, root)
	require.EqualError(t, err, "can't remove VM 800 - protection mode enabled")
	require.NoError(t, l.Update(host, 800, map[string]string{"protection": "0"}, root))
	l.done(l.Start(host, 800, root))
	_, err = l.Delete(host, 800, true, root)
	require.EqualError(t, err, "VM 800 is running - destroy failed")

	l.done(l.Stop(host, 800, root))
	l.done(l.Delete(host, 800, true, root))
	volumes, err := l.Content(host, "local-lvm", "")
	require.NoError(t, err)
	assert.Empty(t, volumes)
	_, err = l.VM(host, 800)
	require.EqualError(t, err, "Configuration file 'nodes/ryzen-proxmox/qemu-server/800.conf' does not exist")
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
