// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package standin_test

import (
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/talos-proxmox/talos-proxmox/lab/standin/bridge"
)

const downloadToken = "proxmoxve:Download/file:File"

// TestProxmoxveIsLikeThePlugin tells the same stories with the stand-in and with the genuine plugin,
// each on a site of its own, and wants them alike to the letter: what is checked, asked of Proxmox VE,
// read back, said, changed and replaced.
func TestProxmoxveIsLikeThePlugin(t *testing.T) {
	t.Parallel()

	told := narrate(t, "proxmoxve")
	var plugin *stage
	standin := newStage(t, func() int { return serve(t, "proxmoxve") })
	sides := []*stage{standin}
	if told.live {
		plugin = newStage(t, func() int { return genuine(t, "proxmoxve") })
		sides = append(sides, plugin)
	}
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, ".iso") {
			_, _ = w.Write([]byte("an image"))

			return
		}
		http.NotFound(w, r)
	}))
	t.Cleanup(web.Close)

	// What the others need.
	pool := scene{token: "proxmoxve:Permission/pool:Pool", inputs: bridge.Tree{"poolId": "k8s", "comment": "machines"}}
	for _, s := range sides {
		e := attach(t, s.ports[token])
		assert.NoError(t, e.configure(bridge.Tree{"endpoint": s.url, "insecure": "true", "apiToken": token}))
		for name, sc := range map[string]scene{"pool": pool, "taken": {token: vmToken, inputs: machine("taken", 100, nil)}} {
			in, problems := e.check(urn(sc.token, name), sc.inputs.Properties(), nil)
			assert.Empty(t, problems)
			_, _, err := e.create(urn(sc.token, name), in, false)
			assert.NoError(t, err)
		}
	}

	for name, sc := range scenes(web.URL) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			alike(t, told.story(t, name, func() story { return plugin.play(t, "m", sc) }), standin.play(t, "m", sc))
		})
	}
}

// scenes returns all scenes by name; each machine has an id of its own.
func scenes(web string) map[string]scene {
	all := map[string]scene{
		"everything": {token: vmToken, inputs: machine("everything", 101, everything())},
		"bare":       {token: vmToken, inputs: bridge.Tree{"nodeName": "alpha", "vmId": 102, "networkDevices": []bridge.Tree{{"bridge": "vmbr0"}}}},
		"running":    {token: vmToken, inputs: machine("running", 103, bridge.Tree{"started": true, "stopOnDestroy": true}), edited: machine("running", 103, bridge.Tree{"started": true, "stopOnDestroy": true, "memory": bridge.Tree{"dedicated": 1024}})},
		"unsettled":  {token: vmToken, inputs: machine("unsettled", 105, nil), edited: machine("unsettled", 105, nil), minds: true},
		"stops":      {token: vmToken, inputs: machine("stops", 104, bridge.Tree{"started": true}), edited: machine("stops", 104, bridge.Tree{"started": false})},
	}
	id := 200
	// In order: what was recorded has the same ids.
	edits, wrong, denied := parityEdits(), mistakes(), refused()
	for _, name := range slices.Sorted(maps.Keys(edits)) {
		sides := edits[name]
		id++
		all["edit "+name] = scene{token: vmToken, inputs: machine("m", id, sides[0]), edited: machine("m", id, sides[1])}
	}
	for _, name := range slices.Sorted(maps.Keys(wrong)) {
		over := wrong[name]
		id++
		all["wrong "+name] = scene{token: vmToken, inputs: machine("m", id, over)}
	}
	for _, name := range slices.Sorted(maps.Keys(denied)) {
		sc := denied[name]
		id++
		if sc.inputs == nil {
			sc.inputs = bridge.Tree{}
		}
		if !sc.inputs.Has("vmId") {
			sc.inputs["vmId"] = id
		}
		sc.token, sc.inputs = vmToken, machine("m", sc.inputs.Int("vmId"), sc.inputs)
		all["refused "+name] = sc
	}
	for name, in := range files(web) {
		over := bridge.Tree{"nodeName": "alpha", "datastoreId": "local", "contentType": "iso", "fileName": name + ".iso", "url": web + "/" + name + ".iso"}
		maps.Copy(over, in)
		all["file "+name] = scene{token: downloadToken, inputs: over}
	}
	maps.Copy(all, others())

	return all
}

// machine returns a small machine that stays off, with these settings over its own.
func machine(name string, id int, over bridge.Tree) bridge.Tree {
	in := bridge.Tree{
		"nodeName": "alpha", "vmId": id, "name": name, "started": false,
		"cdrom":          bridge.Tree{"enabled": true, "fileId": "none", "interface": "ide0"},
		"disks":          []bridge.Tree{{"interface": "scsi0", "size": 8, "datastoreId": "local-lvm", "fileFormat": "raw"}},
		"networkDevices": []bridge.Tree{{"bridge": "vmbr0", "macAddress": "BC:24:11:00:00:01"}},
	}
	maps.Copy(in, over)

	return in
}

// mistakes returns settings that the provider refuses before it asks a host.
func mistakes() map[string]bridge.Tree {
	return map[string]bridge.Tree{
		"cpu type":          {"cpu": bridge.Tree{"type": "pentium9"}},
		"unknown":           {"colour": "red"},
		"unknown within":    {"cpu": bridge.Tree{"colour": "red"}},
		"mac":               {"networkDevices": []bridge.Tree{{"macAddress": "nonsense"}}},
		"interface":         {"disks": []bridge.Tree{{"interface": "floppy0"}}},
		"interface missing": {"disks": []bridge.Tree{{"size": 8}}},
		"disk size":         {"disks": []bridge.Tree{{"interface": "scsi0", "size": 0}}},
		"memory":            {"memory": bridge.Tree{"dedicated": 1}},
		"id":                {"vmId": 50},
		"cores":             {"cpu": bridge.Tree{"cores": 0}},
		"bios":              {"bios": "coreboot"},
		"machine":           {"machine": "toaster"},
		"agent timeout":     {"agent": bridge.Tree{"timeout": "soon"}},
		"dns":               {"initialization": bridge.Tree{"dns": bridge.Tree{"servers": []string{"dns.example.com"}}}},
		"serial":            {"serialDevices": []bridge.Tree{{"device": "lpt"}}},
		"cd":                {"cdrom": bridge.Tree{"fileId": "nonsense"}},
		"cd interface":      {"cdrom": bridge.Tree{"interface": "scsi9", "fileId": "none"}},
		"os":                {"operatingSystem": bridge.Tree{"type": "templeos"}},
		"vga":               {"vga": bridge.Tree{"type": "cga"}},
		"list for object":   {"cpu": []bridge.Tree{{"cores": 2}}},
		"hugepages":         {"memory": bridge.Tree{"hugepages": "2"}},
	}
}

// refused returns machines that a host refuses.
func refused() map[string]scene {
	disk := func(over bridge.Tree) bridge.Tree {
		d := bridge.Tree{"interface": "scsi0", "size": 8, "datastoreId": "local-lvm", "fileFormat": "raw"}
		maps.Copy(d, over)

		return bridge.Tree{"disks": []bridge.Tree{d}}
	}

	return map[string]scene{
		"id taken":       {inputs: bridge.Tree{"vmId": 100}},
		"no datastore":   {inputs: disk(bridge.Tree{"datastoreId": "fast"})},
		"qcow2 on lvm":   {inputs: disk(bridge.Tree{"fileFormat": "qcow2"})},
		"no images here": {inputs: disk(bridge.Tree{"datastoreId": "local"})},
		"no iso":         {inputs: bridge.Tree{"cdrom": bridge.Tree{"enabled": true, "fileId": "local:iso/none.iso", "interface": "ide0"}}},
		"no pool":        {inputs: bridge.Tree{"poolId": "none"}},
		"kvm arguments":  {inputs: bridge.Tree{"kvmArguments": "-cpu host"}},
		"name":           {inputs: bridge.Tree{"name": "under_score"}},
		"pci address":    {inputs: bridge.Tree{"hostpcis": []bridge.Tree{{"device": "hostpci0", "id": "0000:01:00.0"}}}},
		"no mapping":     {inputs: bridge.Tree{"started": true, "hostpcis": []bridge.Tree{{"device": "hostpci0", "mapping": "none"}}}},
		"no bridge":      {inputs: bridge.Tree{"started": true, "networkDevices": []bridge.Tree{{"bridge": "vmbr77"}}}},
		"stranger":       {secret: stranger},
		"viewer":         {secret: viewer},
	}
}

// files returns downloads, as they differ from one that comes about.
func files(web string) map[string]bridge.Tree {
	return map[string]bridge.Tree{
		"plain":          {},
		"nas":            {"datastoreId": "nas", "overwrite": false},
		"none":           {"url": web + "/none"},
		"no-host":        {"url": "http://127.0.0.1:9/x.iso"},
		"no-store":       {"datastoreId": "fast"},
		"wrong-content":  {"datastoreId": "local-lvm"},
		"checksum":       {"checksum": strings.Repeat("0", 64), "checksumAlgorithm": "sha256"},
		"algorithm":      {"checksum": strings.Repeat("0", 64), "checksumAlgorithm": "crc"},
		"algorithm-only": {"checksumAlgorithm": "sha256"},
		"content-type":   {"contentType": "film"},
		"url":            {"url": "nonsense"},
		"name":           {"fileName": "x.txt"},
		"unzipped":       {"fileName": "unzipped.img", "decompressionAlgorithm": "zip"},
	}
}

// others returns resources that are neither machines nor files.
func others() map[string]scene {
	return map[string]scene{
		"pool": {
			token:  "proxmoxve:Permission/pool:Pool",
			inputs: bridge.Tree{"poolId": "pool-two", "comment": "a"}, edited: bridge.Tree{"poolId": "pool-two", "comment": "b"},
		},
		"usb mapping": {
			token:  "proxmoxve:Hardware/mapping/usb:Usb",
			inputs: bridge.Tree{"name": "usb-one", "comment": "a", "maps": []bridge.Tree{{"node": "alpha", "id": "046d:c31c"}}},
			edited: bridge.Tree{"name": "usb-one", "comment": "b", "maps": []bridge.Tree{{"node": "alpha", "id": "046d:c31c", "comment": "mine"}}},
		},
		"pci mapping": {
			token: "proxmoxve:Hardware/mapping/pci:Pci",
			inputs: bridge.Tree{"name": "pci-one", "mediatedDevices": false, "maps": []bridge.Tree{
				{"node": "host3", "id": "10de:2204", "path": "0000:01:00.0", "iommuGroup": 1, "subsystemId": "10de:1467"},
			}},
			edited: bridge.Tree{"name": "pci-one", "mediatedDevices": true, "comment": "a card", "maps": []bridge.Tree{
				{"node": "host3", "id": "10de:2204", "path": "0000:01:00.0", "iommuGroup": 1, "subsystemId": "10de:1467"},
			}},
		},
		"mapping of nonsense": {
			token:  "proxmoxve:Hardware/mapping/pci:Pci",
			inputs: bridge.Tree{"name": "bad", "maps": []bridge.Tree{{"node": "host3", "id": "nonsense", "path": "01:00.0"}}},
		},
		"ha resource": {
			token:  "proxmoxve:HA/hAResource:HAResource",
			inputs: bridge.Tree{"resourceId": "vm:100", "state": "started", "comment": "a", "maxRestart": 2},
			edited: bridge.Tree{"resourceId": "vm:100", "state": "stopped", "comment": "b", "maxRestart": 3},
		},
		"ha of nothing": {token: "proxmoxve:HA/hAResource:HAResource", inputs: bridge.Tree{"resourceId": "vm:999", "state": "started"}},
	}
}

// everything sets what the project's own nodes set, and more.
func everything() bridge.Tree {
	return bridge.Tree{
		"acpi": true, "bios": "ovmf", "bootOrders": []string{"scsi0", "ide0"}, "description": "line one\nline two",
		"machine": "q35", "migrate": true, "onBoot": true, "protection": false, "scsiHardware": "virtio-scsi-single",
		"stopOnDestroy": true, "tabletDevice": false, "tags": []string{"b", "a"}, "keyboardLayout": "de",
		"agent":    bridge.Tree{"enabled": true, "timeout": "60s", "trim": true, "type": "virtio"},
		"cpu":      bridge.Tree{"cores": 4, "sockets": 2, "type": "x86-64-v2-AES", "flags": []string{"+aes"}, "limit": 2, "units": 200, "numa": true},
		"memory":   bridge.Tree{"dedicated": 4096, "floating": 0},
		"efiDisk":  bridge.Tree{"datastoreId": "local-lvm", "fileFormat": "raw", "type": "4m", "preEnrolledKeys": false},
		"tpmState": bridge.Tree{"datastoreId": "local-lvm", "version": "v2.0"},
		"cdrom":    bridge.Tree{"enabled": true, "fileId": "none", "interface": "ide0"},
		"disks": []bridge.Tree{
			{
				"interface": "scsi0", "size": 10, "datastoreId": "local-lvm", "fileFormat": "raw", "iothread": true, "ssd": true,
				"discard": "on", "cache": "writethrough", "aio": "io_uring", "backup": false, "replicate": false, "serial": "os",
			},
			{"interface": "virtio1", "size": 20, "datastoreId": "nas", "fileFormat": "qcow2"},
		},
		"networkDevices": []bridge.Tree{
			{"bridge": "vmbr0", "macAddress": "BC:24:11:00:00:02", "vlanId": 5, "mtu": 1400, "firewall": true, "queues": 2, "rateLimit": 100},
			{"bridge": "vmbr1", "model": "e1000", "disconnected": true},
		},
		"initialization": bridge.Tree{
			"datastoreId": "local-lvm", "interface": "ide2", "type": "nocloud",
			"dns":       bridge.Tree{"domain": "example.com", "servers": []string{"10.0.0.1", "10.0.0.2"}},
			"ipConfigs": []bridge.Tree{{"ipv4": bridge.Tree{"address": "10.0.0.5/24", "gateway": "10.0.0.1"}}, {"ipv4": bridge.Tree{"address": "dhcp"}}},
		},
		"operatingSystem": bridge.Tree{"type": "l26"}, "serialDevices": []bridge.Tree{{"device": "socket"}},
		"smbios":  bridge.Tree{"serial": "ds=nocloud", "manufacturer": "us"},
		"startup": bridge.Tree{"order": 3, "upDelay": 10, "downDelay": 20},
		"vga":     bridge.Tree{"type": "serial0", "memory": 16}, "watchdog": bridge.Tree{"enabled": true, "model": "i6300esb", "action": "reset"},
		"poolId": "k8s",
	}
}

// parityEdits returns edits of one setting of a machine, before and after.
func parityEdits() map[string][2]bridge.Tree {
	disk := func(over bridge.Tree) bridge.Tree {
		d := bridge.Tree{"interface": "scsi0", "size": 8, "datastoreId": "local-lvm", "fileFormat": "raw"}
		maps.Copy(d, over)

		return bridge.Tree{"disks": []bridge.Tree{d}}
	}
	nic := func(over bridge.Tree) bridge.Tree {
		n := bridge.Tree{"bridge": "vmbr0", "macAddress": "BC:24:11:00:00:01"}
		maps.Copy(n, over)

		return bridge.Tree{"networkDevices": []bridge.Tree{n}}
	}
	none := bridge.Tree{}

	return map[string][2]bridge.Tree{
		"cores":          {{"cpu": bridge.Tree{"cores": 2, "type": "host"}}, {"cpu": bridge.Tree{"cores": 4, "type": "host"}}},
		"cpu-added":      {none, {"cpu": bridge.Tree{"cores": 2}}},
		"memory":         {{"memory": bridge.Tree{"dedicated": 1024}}, {"memory": bridge.Tree{"dedicated": 2048}}},
		"description":    {{"description": "a"}, {"description": "b"}},
		"description-no": {{"description": "a"}, none},
		"tags":           {{"tags": []string{"a"}}, {"tags": []string{"a", "b"}}},
		"tags-no":        {{"tags": []string{"a"}}, none},
		"on-boot":        {{"onBoot": true}, {"onBoot": false}},
		"protection":     {{"protection": true}, {"protection": false}},
		"startup":        {{"startup": bridge.Tree{"order": 1}}, {"startup": bridge.Tree{"order": 2, "upDelay": 5}}},
		"machine":        {{"machine": "q35"}, {"machine": "pc"}},
		"bios":           {{"bios": "seabios"}, {"bios": "ovmf"}},
		"scsi-hardware":  {{"scsiHardware": "virtio-scsi-pci"}, {"scsiHardware": "virtio-scsi-single"}},
		"os":             {{"operatingSystem": bridge.Tree{"type": "l26"}}, {"operatingSystem": bridge.Tree{"type": "other"}}},
		"agent":          {{"agent": bridge.Tree{"enabled": false}}, {"agent": bridge.Tree{"enabled": true, "timeout": "1s"}}},
		"serial-added":   {none, {"serialDevices": []bridge.Tree{{"device": "socket"}}}},
		"boot-order":     {{"bootOrders": []string{"scsi0"}}, {"bootOrders": []string{"scsi0", "net0"}}},
		"vga":            {{"vga": bridge.Tree{"type": "std"}}, {"vga": bridge.Tree{"type": "serial0"}}},
		"disk-grows":     {none, disk(bridge.Tree{"size": 12})},
		"disk-option":    {none, disk(bridge.Tree{"ssd": true, "discard": "on"})},
		"disk-moves":     {none, disk(bridge.Tree{"datastoreId": "nas"})},
		"disk-shrinks":   {none, disk(bridge.Tree{"size": 4})},
		"disk-added": {none, {"disks": []bridge.Tree{
			{"interface": "scsi0", "size": 8, "datastoreId": "local-lvm", "fileFormat": "raw"},
			{"interface": "scsi1", "size": 3, "datastoreId": "local-lvm", "fileFormat": "raw"},
		}}},
		"vlan":         {none, nic(bridge.Tree{"vlanId": 7})},
		"mac":          {none, nic(bridge.Tree{"macAddress": "BC:24:11:00:00:99"})},
		"nic-firewall": {none, nic(bridge.Tree{"firewall": true})},
		"cdrom":        {{"cdrom": bridge.Tree{"enabled": true, "fileId": "none", "interface": "ide0"}}, {"cdrom": bridge.Tree{"enabled": true, "fileId": "cdrom", "interface": "ide0"}}},
		"address": {
			{"initialization": bridge.Tree{"datastoreId": "local-lvm", "ipConfigs": []bridge.Tree{{"ipv4": bridge.Tree{"address": "10.0.0.5/24"}}}}},
			{"initialization": bridge.Tree{"datastoreId": "local-lvm", "ipConfigs": []bridge.Tree{{"ipv4": bridge.Tree{"address": "10.0.0.6/24"}}}}},
		},
		"moves-host":      {{"migrate": true}, {"migrate": true, "nodeName": "charlie"}},
		"moves-not":       {{"migrate": false}, {"migrate": false, "nodeName": "charlie"}},
		"name":            {none, {"name": "e-name-new"}},
		"pool":            {none, {"poolId": "k8s"}},
		"stop-on-destroy": {{"stopOnDestroy": false}, {"stopOnDestroy": true}},
		"efi-type": {
			{"bios": "ovmf", "efiDisk": bridge.Tree{"datastoreId": "local-lvm", "fileFormat": "raw", "type": "2m"}},
			{"bios": "ovmf", "efiDisk": bridge.Tree{"datastoreId": "local-lvm", "fileFormat": "raw", "type": "4m"}},
		},
	}
}
