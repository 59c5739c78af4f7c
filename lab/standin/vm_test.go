// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package standin_test

import (
	"testing"

	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	pulumirpc "github.com/pulumi/pulumi/sdk/v3/proto/go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/talos-proxmox/talos-proxmox/lab/standin/bridge"
)

const vmToken = "proxmoxve:VM/virtualMachine:VirtualMachine"

func node() bridge.Tree {
	return bridge.Tree{
		"nodeName": "pve1", "vmId": 800, "name": "cp1", "tags": []string{"talos", "cp"}, "stopOnDestroy": true,
		"migrate": true, "bootOrders": []string{"scsi0", "ide0"},
		"cpu":             bridge.Tree{"cores": 2, "type": "x86-64-v2-AES"},
		"memory":          bridge.Tree{"dedicated": 4096},
		"operatingSystem": bridge.Tree{"type": "l26"},
		"disks": []bridge.Tree{{
			"interface": "scsi0", "size": 20, "datastoreId": "local-lvm", "fileFormat": "raw", "iothread": true,
		}},
		"cdrom":          bridge.Tree{"enabled": true, "fileId": "local:iso/talos.iso", "interface": "ide0"},
		"networkDevices": []bridge.Tree{{"bridge": "vmbr0", "macAddress": "BC:24:11:00:00:01"}},
		"serialDevices":  []bridge.Tree{{"device": "socket"}},
		"initialization": bridge.Tree{
			"datastoreId": "local-lvm",
			"ipConfigs":   []bridge.Tree{{"ipv4": bridge.Tree{"address": "10.0.0.1/24", "gateway": "10.0.0.254"}}},
			"dns":         bridge.Tree{"servers": []string{"10.0.0.254"}},
		},
	}
}

func proxmoxEngine(t *testing.T, port int, pve *fakePVE) engine {
	t.Helper()

	e := attach(t, port)
	require.NoError(t, e.configure(bridge.Tree{"endpoint": pve.URL, "insecure": "true", "apiToken": token}))

	return e
}

func with(t bridge.Tree, key string, value any) bridge.Tree {
	c := bridge.Tree{}
	for k, v := range t {
		c[k] = v
	}
	c[key] = value

	return c
}

// The whole life of a VM: what is checked, sent, read back, changed and removed.
func TestVirtualMachineLife(t *testing.T) {
	t.Parallel()

	pve := newFakePVE(t)
	e := proxmoxEngine(t, serve(t, "proxmoxve"), pve)
	e.ignore = []string{"disks[0].speed"} // or the provider finds a difference for ever
	u := urn(vmToken, "cp1")

	in, problems := e.check(u, node().Properties(), nil)
	require.Empty(t, problems)

	_, planned, err := e.create(u, in, true)
	require.NoError(t, err)
	assert.True(t, planned["ipv4Addresses"].IsComputed(), "a preview knows no addresses")
	assert.Empty(t, pve.took(), "a preview changes nothing")

	id, out, err := e.create(u, in, false)
	require.NoError(t, err)
	assert.Equal(t, "800", id)
	assert.Equal(t, []string{"POST nodes/pve1/qemu", "POST nodes/pve1/qemu/800/status/start"}, pve.took())

	c := pve.config(800)
	assert.Equal(t, "order=scsi0;ide0", c["boot"])
	assert.Equal(t, "local:iso/talos.iso,media=cdrom", c["ide0"])
	assert.Equal(t, "local-lvm:cloudinit,media=cdrom", c["ide2"])
	assert.Equal(t, "gw=10.0.0.254,ip=10.0.0.1/24", c["ipconfig0"])
	assert.Equal(t, "cp;talos", c["tags"])
	assert.Contains(t, c["scsi0"], "local-lvm:vm-800-disk-0,aio=io_uring,backup=1,iothread=1")

	// What was just made is what was asked for: nothing to change, nothing drifted.
	again, _ := e.check(u, node().Properties(), in)
	assert.Equal(t, pulumirpc.DiffResponse_DIFF_NONE, e.diff(u, id, in, out, again).GetChanges())

	inPart := out.Copy()
	inPart["id"] = resource.NewProperty(id)
	assert.Equal(t, id, e.read(u, id, in, inPart).GetId(), "what was made in part has its id among its outputs")
	r := e.read(u, id, in, out)
	assert.Equal(t, pulumirpc.DiffResponse_DIFF_NONE, e.diff(u, id, e.unmarshal(r.GetInputs()), out, in).GetChanges(),
		"a refresh right after creation shows no drift")

	assert.Equal(t, "800", e.read(u, "pve1/800", nil, nil).GetId(), "an import names the host too, the state does not")

	// Somebody changed the memory by hand.
	pve.set(800, "memory", "2048")
	r = e.read(u, id, in, out)
	d := e.diff(u, id, e.unmarshal(r.GetInputs()), e.unmarshal(r.GetProperties()), in)
	assert.Equal(t, []string{"memory.dedicated"}, d.GetDiffs())

	grown, _ := e.check(u, with(node(), "memory", bridge.Tree{"dedicated": 8192}).Properties(), in)
	out2, err := e.update(u, id, in, out, grown)
	require.NoError(t, err)
	assert.Equal(t, []string{"PUT nodes/pve1/qemu/800/config", "POST nodes/pve1/qemu/800/status/reboot"}, pve.took(),
		"memory is followed by a reboot")
	assert.Equal(t, 8192, bridge.TreeOf(out2).Int("memory.dedicated"))

	require.NoError(t, e.remove(u, id, grown, out2))
	assert.Equal(t, []string{"POST nodes/pve1/qemu/800/status/stop", "DELETE nodes/pve1/qemu/800/"}, pve.took())
	assert.Empty(t, e.read(u, id, grown, out2).GetId(), "what is gone leaves the state")
}

func TestVirtualMachineChanges(t *testing.T) {
	t.Parallel()

	e := proxmoxEngine(t, serve(t, "proxmoxve"), newFakePVE(t))
	u := urn(vmToken, "cp1")
	was, _ := e.check(u, node().Properties(), nil)

	disk := func(change bridge.Tree) bridge.Tree {
		d := bridge.Tree{
			"interface": "scsi0", "size": 20, "datastoreId": "local-lvm", "fileFormat": "raw", "iothread": true,
		}
		for k, v := range change {
			d[k] = v
		}
		return with(node(), "disks", []bridge.Tree{d})
	}

	for name, c := range map[string]struct {
		now      bridge.Tree
		diffs    []string
		replaces []string
	}{
		"nothing":         {now: node()},
		"more cores":      {now: with(node(), "cpu", bridge.Tree{"cores": 4, "type": "x86-64-v2-AES"}), diffs: []string{"cpu.cores"}},
		"another node":    {now: with(node(), "nodeName", "pve2"), diffs: []string{"nodeName"}},
		"not migratable":  {now: with(with(node(), "nodeName", "pve2"), "migrate", false), diffs: []string{"migrate", "nodeName"}, replaces: []string{"nodeName"}},
		"another id":      {now: with(node(), "vmId", 801), diffs: []string{"vmId"}, replaces: []string{"vmId"}},
		"a bigger disk":   {now: disk(bridge.Tree{"size": 30}), diffs: []string{"disks[0].size"}},
		"an imported one": {now: disk(bridge.Tree{"fileId": "local:iso/x.img"}), diffs: []string{"disks[0].fileId"}, replaces: []string{"disks[0].fileId"}},
		"another ISO": {
			now:   with(node(), "cdrom", bridge.Tree{"enabled": true, "fileId": "local:iso/y.iso", "interface": "ide0"}),
			diffs: []string{"cdrom.fileId"},
		},
		"an EFI disk": {now: with(node(), "efiDisk", bridge.Tree{"type": "4m"}), diffs: []string{"efiDisk"}, replaces: []string{"efiDisk"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := e
			e.ignore = []string{"disks[0].speed"}
			now, problems := e.check(u, c.now.Properties(), was)
			require.Empty(t, problems)
			d := e.diff(u, "800", was, was, now)
			assert.ElementsMatch(t, c.diffs, d.GetDiffs())
			assert.ElementsMatch(t, c.replaces, d.GetReplaces())
		})
	}
}

func TestVirtualMachineProblems(t *testing.T) {
	t.Parallel()

	e := proxmoxEngine(t, serve(t, "proxmoxve"), newFakePVE(t))
	u := urn(vmToken, "cp1")

	without := func(key string) bridge.Tree {
		c := with(node(), key, nil)
		delete(c, key)
		return c
	}

	for name, c := range map[string]struct {
		in   bridge.Tree
		want []string
	}{
		"no node": {without("nodeName"), []string{`nodeName: Missing required argument. The argument "node_name" is required, ` +
			`but no definition was found. Examine values at 'cp1.nodeName'.`}},
		"no network": {without("networkDevices"), []string{`networkDevices: Missing required argument. The argument ` +
			`"network_devices" is required, but no definition was found. Examine values at 'cp1.networkDevices'.`}},
		"misspelt": {with(node(), "memroy", 1), []string{`memroy: Invalid or unknown key. Did you mean "memory"?. ` +
			`Examine values at 'cp1.memroy'.`}},
		"wrong type": {with(node(), "disks", []bridge.Tree{{"interface": "scsi0", "size": "big"}}), []string{
			`disks[0].size: expected integer type, got string type. Examine values at 'cp1.disks[0].size'.`,
		}},
		"bios": {with(node(), "bios", "efi"), []string{
			`bios: expected bios to be one of ["ovmf" "seabios"], got efi. Examine values at 'cp1.bios'.`,
		}},
		"mac": {with(node(), "networkDevices", []bridge.Tree{{"macAddress": "BC-24"}}), []string{
			`networkDevices[0].macAddress: expected networkDevices.0.macAddress to be a valid MAC address ` +
				`(A0:B1:C2:D3:E4:F5), got BC-24. Examine values at 'cp1.networkDevices[0].macAddress'.`,
		}},
		"cores": {with(node(), "cpu", bridge.Tree{"cores": 0}), []string{
			`cpu.cores: expected cpu.cores to be in the range (1 - 2304), got 0. Examine values at 'cp1.cpu.cores'.`,
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, found := e.check(u, c.in.Properties(), nil)
			assert.Equal(t, c.want, found)
		})
	}
}

// Several engines, each with its own configuration, share a port.
func TestConnectionsKeepTheirConfiguration(t *testing.T) {
	t.Parallel()

	port, a, b := serve(t, "proxmoxve"), newFakePVE(t), newFakePVE(t)
	first, second := proxmoxEngine(t, port, a), proxmoxEngine(t, port, b)
	u := urn(vmToken, "cp1")

	in, _ := first.check(u, node().Properties(), nil)
	_, _, err := first.create(u, in, false)
	require.NoError(t, err)

	assert.Len(t, a.took(), 2)
	assert.Empty(t, b.took())
	assert.Empty(t, second.read(u, "800", in, in).GetId(), "the other site has no such VM")
}

func TestSecretsStaySecret(t *testing.T) {
	t.Parallel()

	e := proxmoxEngine(t, serve(t, "proxmoxve"), newFakePVE(t))
	u := urn(vmToken, "cp1")

	props := node().Properties()
	props["description"] = resource.MakeSecret(resource.NewProperty("hidden"))
	init := props["initialization"].ObjectValue()
	init["userAccount"] = resource.NewProperty(resource.PropertyMap{"password": resource.NewProperty("hunter2")})

	in, problems := e.check(u, props, nil)
	require.Empty(t, problems)
	_, out, err := e.create(u, in, false)
	require.NoError(t, err)

	assert.True(t, out["description"].IsSecret(), "secret inputs are secret outputs")
	account := out["initialization"].ObjectValue()["userAccount"].ObjectValue()
	assert.True(t, account["password"].IsSecret(), "passwords are secret whatever the program says")
}

func TestDownload(t *testing.T) {
	t.Parallel()

	pve := newFakePVE(t)
	e := proxmoxEngine(t, serve(t, "proxmoxve"), pve)
	u := urn("proxmoxve:Download/file:File", "iso")

	in, problems := e.check(u, bridge.Tree{
		"nodeName": "pve1", "datastoreId": "local", "contentType": "iso", "url": "https://factory.talos.dev/x.iso",
	}.Properties(), nil)
	require.Empty(t, problems)

	id, out, err := e.create(u, in, false)
	require.NoError(t, err)
	assert.Equal(t, "local:iso/talos.iso", id)
	assert.Equal(t, 7, bridge.TreeOf(out).Int("size"))

	r := e.read(u, id, in, out)
	d := e.diff(u, id, e.unmarshal(r.GetInputs()), e.unmarshal(r.GetProperties()), in)
	assert.Equal(t, pulumirpc.DiffResponse_DIFF_NONE, d.GetChanges())

	require.NoError(t, e.remove(u, id, in, out))
	assert.Contains(t, pve.took(), "DELETE nodes/pve1/storage/local/content/local:iso%2Ftalos.iso")

	_, found := e.check(u, bridge.Tree{
		"nodeName": "pve1", "datastoreId": "local", "contentType": "iso", "url": "https://x/y.raw.xz",
		"decompressionAlgorithm": "xz",
	}.Properties(), nil)
	assert.Equal(t, []string{`decompressionAlgorithm: expected decompressionAlgorithm to be one of ` +
		`["gz" "lzo" "zst" "bz2"], got xz. Examine values at 'iso.decompressionAlgorithm'.`}, found)
}

func TestUnservedKindsAreRefused(t *testing.T) {
	t.Parallel()

	e := proxmoxEngine(t, serve(t, "proxmoxve"), newFakePVE(t))
	_, err := e.rpc.Check(t.Context(), &pulumirpc.CheckRequest{
		Urn: string(urn("proxmoxve:CT/container:Container", "x")), News: e.marshal(nil),
	})
	assert.ErrorContains(t, err, "the lab's stand-in for the provider proxmoxve does not serve "+
		"proxmoxve:CT/container:Container: use the genuine plugin (lab exec --providers real)")
}
