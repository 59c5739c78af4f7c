// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package standin_test

import (
	"testing"
	"time"

	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	pulumirpc "github.com/pulumi/pulumi/sdk/v3/proto/go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/talos-proxmox/talos-proxmox/lab/standin/bridge"
)

// The tests of this file are naive programs: each does what looks right, and what it gets is what the genuine
// provider does to it.

const fileToken = "proxmoxve:Download/file:File"

// made checks and creates a resource.
func (e engine) made(typ, name string, args bridge.Tree) (in, out resource.PropertyMap, id string) {
	e.t.Helper()

	in, problems := e.check(urn(typ, name), args.Properties(), nil)
	require.Empty(e.t, problems)
	id, out, err := e.create(urn(typ, name), in, false)
	require.NoError(e.t, err)

	return in, out, id
}

// refreshed tells what an `up` after a refresh would do.
func (e engine) refreshed(typ, name, id string, in, out resource.PropertyMap) *pulumirpc.DiffResponse {
	e.t.Helper()

	r := e.read(urn(typ, name), id, in, out)

	return e.diff(urn(typ, name), id, e.unmarshal(r.GetInputs()), e.unmarshal(r.GetProperties()), in)
}

func TestPitfallOverwriteOfAnUnpackedImageReplacesForEver(t *testing.T) {
	t.Parallel()

	e, _, web := onSite(t)
	args := bridge.Tree{
		"nodeName": "alpha", "datastoreId": "local", "contentType": "iso", "url": web + "/talos.raw.gz",
		"fileName": "talos.img", "decompressionAlgorithm": "gz",
	}
	in, out, id := e.made(fileToken, "image", args)
	assert.Equal(t, []string{"size"}, e.refreshed(fileToken, "image", id, in, out).GetReplaces(),
		"the size of what was packed is not the size of the file")

	args["overwrite"], args["fileName"] = false, "other.img"
	in, out, id = e.made(fileToken, "other", args)
	assert.Empty(t, e.refreshed(fileToken, "other", id, in, out).GetDiffs())
}

func TestPitfallSameFileNameForAnotherImage(t *testing.T) {
	t.Parallel()

	e, _, web := onSite(t)
	args := bridge.Tree{"nodeName": "alpha", "datastoreId": "local", "contentType": "iso", "url": web + "/talos.iso"}
	e.made(fileToken, "image", args)

	u := urn(fileToken, "image")
	next, _ := e.check(u, args.Properties(), nil)
	_, _, err := e.create(u, next, false)
	assert.ErrorContains(t, err, "refusing to override existing file '/var/lib/vz/template/iso/talos.iso'",
		"the engine makes the replacement first")
}

func TestPitfallCDComesFirst(t *testing.T) {
	t.Parallel()

	e, s, web := onSite(t)
	e.made(fileToken, "image", bridge.Tree{
		"nodeName": "alpha", "datastoreId": "local", "contentType": "iso", "url": web + "/talos.iso",
	})
	args := with(with(node(), "nodeName", "alpha"), "cdrom",
		bridge.Tree{"enabled": true, "fileId": "local:iso/talos.iso", "interface": "ide0"})
	delete(args, "bootOrders")
	e.made(vmToken, "cp1", args)

	v, err := s.Clusters()[0].VM("alpha", 800)
	require.NoError(t, err)
	assert.Equal(t, "order=ide0;scsi0;net0", v.Config["boot"], "Talos's ISO halts once Talos is installed")
}

func TestPitfallWhatIsLeftOutIsThereAllTheSame(t *testing.T) {
	t.Parallel()

	e, s, _ := onSite(t)
	args := with(node(), "nodeName", "alpha")
	for _, left := range []string{"disks", "serialDevices", "cpu", "memory", "cdrom", "bootOrders"} {
		delete(args, left)
	}
	in, problems := e.check(urn(vmToken, "cp1"), args.Properties(), nil)
	require.Empty(t, problems)
	disk := in["disks"].ArrayValue()[0].ObjectValue()
	assert.Equal(t, "scsi0", disk["interface"].StringValue(), "a disk that nobody asked for")
	assert.InEpsilon(t, 8, disk["size"].NumberValue(), 0)
	_, _, err := e.create(urn(vmToken, "cp1"), in, false)
	require.ErrorContains(t, err, "unsupported format 'qcow2'", "nor does its format fit its datastore")

	args["disks"] = node()["disks"]
	e.made(vmToken, "cp1", args)
	v, err := s.Clusters()[0].VM("alpha", 800)
	require.NoError(t, err)
	assert.Equal(t, "socket", v.Config["serial0"])
	assert.Contains(t, v.Config["cpu"], "qemu64", "which Talos does not boot on")
	assert.Equal(t, "512", v.Config["memory"])
}

func TestPitfallVMWithoutNameIsCalledAfterItsResource(t *testing.T) {
	t.Parallel()

	e, s, _ := onSite(t)
	args := with(with(node(), "nodeName", "alpha"), "cdrom", nil)
	delete(args, "name")
	delete(args, "cdrom")
	delete(args, "bootOrders")
	e.made(vmToken, "cp1", args)

	v, err := s.Clusters()[0].VM("alpha", 800)
	require.NoError(t, err)
	assert.Regexp(t, `^cp1-[0-9a-f]{7}$`, v.Config["name"], "and so is its guest, by cloud-init")
}

// A VM that somebody moves by hand is what HA and a balancer do.
func TestPitfallMigrationByHandReplacesTheVM(t *testing.T) {
	t.Parallel()

	for name, c := range map[string]struct {
		migrate  bool
		replaces []string
	}{"a naive program": {false, []string{"nodeName"}}, "with migrate": {true, nil}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e, s, _ := onSite(t)
			args := with(with(with(node(), "nodeName", "alpha"), "migrate", c.migrate), "cdrom", nil)
			delete(args, "cdrom")
			delete(args, "bootOrders")
			in, out, id := e.made(vmToken, "cp1", args)

			upid, err := s.Clusters()[0].Migrate("alpha", 800, "charlie", "", true, true, "root@pam")
			require.NoError(t, err)
			require.NoError(t, s.Wait(t.Context(), upid))
			d := e.refreshed(vmToken, "cp1", id, in, out)
			assert.Contains(t, d.GetDiffs(), "nodeName")
			assert.Equal(t, c.replaces, d.GetReplaces())
		})
	}
}

func TestPitfallAgentThatDoesNotRunIsWaitedFor(t *testing.T) {
	t.Parallel()

	e, _, _ := onSite(t)
	const timeout = 1500 * time.Millisecond
	args := with(with(node(), "nodeName", "alpha"), "agent", bridge.Tree{"enabled": true, "timeout": timeout.String()})
	delete(args, "cdrom")
	delete(args, "bootOrders")

	started := time.Now()
	in, out, id := e.made(vmToken, "cp1", args)
	assert.GreaterOrEqual(t, time.Since(started), timeout, "the whole timeout, 15 minutes unless set")
	assert.Empty(t, out["ipv4Addresses"].ArrayValue(), "and no error")

	started = time.Now()
	e.read(urn(vmToken, "cp1"), id, in, out)
	assert.GreaterOrEqual(t, time.Since(started), timeout, "again at each refresh")
}

func TestPitfallDiskImageNeedsSSH(t *testing.T) {
	t.Parallel()

	e, s, _ := onSite(t)
	args := with(with(with(node(), "nodeName", "alpha"), "cdrom", bridge.Tree{"enabled": false}), "disks", []bridge.Tree{{
		"interface": "scsi0", "size": 20, "datastoreId": "local-lvm", "fileId": "local:iso/talos.img",
	}})
	in, problems := e.check(urn(vmToken, "cp1"), args.Properties(), nil)
	require.Empty(t, problems)
	_, _, err := e.create(urn(vmToken, "cp1"), in, false)
	require.ErrorContains(t, err, "creating custom disk: failed to dial 127.0.0.1:1: ")
	assert.Len(t, s.Clusters()[0].VMs(), 1, "the VM is there, without its disk")
}

// Agreement of hosts, images and VMs: what a download to one host is to a VM of another.
func TestPitfallImageOfAnotherHost(t *testing.T) {
	t.Parallel()

	e, s, web := onSite(t)
	e.made(fileToken, "image", bridge.Tree{
		"nodeName": "charlie", "datastoreId": "local", "contentType": "iso", "url": web + "/talos.iso",
	})
	args := with(with(node(), "nodeName", "alpha"), "cdrom",
		bridge.Tree{"enabled": true, "fileId": "local:iso/talos.iso", "interface": "ide0"})
	in, problems := e.check(urn(vmToken, "cp1"), args.Properties(), nil)
	require.Empty(t, problems)
	_, _, err := e.create(urn(vmToken, "cp1"), in, false)
	require.ErrorContains(t, err, "volume 'local:iso/talos.iso' does not exist")
	assert.Empty(t, s.Clusters()[0].VMs())
}

func TestPitfallProtectedVMCannotBeDestroyed(t *testing.T) {
	t.Parallel()

	e, _, _ := onSite(t)
	args := with(with(node(), "nodeName", "alpha"), "protection", true)
	delete(args, "cdrom")
	delete(args, "bootOrders")
	in, out, id := e.made(vmToken, "cp1", args)

	err := e.remove(urn(vmToken, "cp1"), id, in, out)
	assert.ErrorContains(t, err, "can't remove VM 800 - protection mode enabled")
}

// The provider does not know that these are secrets; the program has to say so.
func TestPitfallSSHKeyIsPlainText(t *testing.T) {
	t.Parallel()

	e := attach(t, serve(t, "proxmoxve"))
	config := bridge.Tree{"apiToken": token, "ssh": bridge.Tree{"privateKey": "KEY", "password": "PASSWORD"}}
	r, err := e.rpc.CheckConfig(t.Context(), &pulumirpc.CheckRequest{
		Urn: string(urn("pulumi:providers:proxmoxve", "pve")), News: e.marshal(config.Properties()),
	})
	require.NoError(t, err)
	got := e.unmarshal(r.GetInputs())
	assert.True(t, got["apiToken"].IsSecret())
	assert.False(t, got["ssh"].ContainsSecrets())
}
