// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package spec_test

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/talos-proxmox/talos-proxmox/spec"
)

// small returns a cluster as a Go caller writes it by hand.
func small() spec.Config {
	node := func(name string, role spec.Role, id int, address string) spec.NamedNode {
		return spec.NamedNode{Name: name, Node: spec.Node{
			Role: &role, Host: spec.Ptr("pve1"), VMID: &id,
			Networks: map[string]spec.Network{"lan": {Bridge: spec.Ptr("vmbr0"), Address: &address, Gateway: spec.Ptr("10.0.0.1")}},
		}}
	}

	return spec.Config{
		Cluster: spec.Cluster{Name: spec.Ptr("small")},
		Nodes: []spec.NamedNode{
			node("work-1", spec.Worker, 201, "10.0.0.21/24"), node("ctrl-1", spec.ControlPlane, 101, "10.0.0.11/24"),
		},
	}
}

func TestDefaultsAreCompleteAndLeaveTheCallerAlone(t *testing.T) {
	t.Parallel()
	c := small()
	before, err := json.Marshal(c)
	require.NoError(t, err)
	full := c.WithDefaults()
	after, err := json.Marshal(c)
	require.NoError(t, err)
	assert.JSONEq(t, string(before), string(after))
	assert.Equal(t, full, full.WithDefaults())

	require.Equal(t, "ctrl-1", full.Nodes[0].Name, "control planes come first")
	n := full.Nodes[0]
	assert.Equal(t, "ctrl-1", *n.Hostname)
	assert.False(t, *n.Agent, "the image has no agent")
	assert.Equal(t, "/dev/disk/by-id/scsi-0QEMU_QEMU_HARDDISK_drive-scsi0", *n.InstallDisk)
	assert.Equal(t, "local-lvm", *n.OSDisk.Datastore)
	assert.Equal(t, "local-lvm", *n.CloudInitDatastore)
	assert.True(t, *n.OSDisk.Iothread)
	assert.Equal(t, spec.MACFor("small", "ctrl-1", "lan"), *n.Networks["lan"].MAC)
	assert.Nil(t, full.Talos.Contract, "it is pinned when the cluster is created")
	assert.Equal(t, []string{"10.244.0.0/16"}, full.Cluster.PodSubnets)
	assert.False(t, *full.Cluster.AllowSchedulingOnControlPlanes)
	assert.True(t, *full.Kubernetes.Proxy.Enabled)
}

func TestDefaultsThatFollow(t *testing.T) {
	t.Parallel()
	c := small()
	c.Images = map[string]spec.Image{spec.DefaultImage: {Extensions: []string{"qemu-guest-agent"}}}
	c.CNI.Name = spec.Ptr("cilium")
	c.Nodes = c.Nodes[1:]
	n := &c.Nodes[0]
	n.BIOS = spec.Ptr("ovmf")
	n.TPM = &spec.TPM{}
	n.OSDisk = &spec.Disk{Type: spec.Ptr("virtio"), Datastore: spec.Ptr("fast")}
	n.Disks = map[string]spec.Disk{"a-name-longer-than-twenty-bytes": {Mountpoint: spec.Ptr("/var/mnt/a"), Type: spec.Ptr("sata")}}
	c.Proxmox.Hosts = map[string]spec.Host{"pve1": {Zone: spec.Ptr("rack-1"), Datastore: spec.Ptr("slow")}}
	full := c.WithDefaults()
	got := full.Nodes[0]
	assert.True(t, *got.Agent)
	assert.Equal(t, "rack-1", *got.Zone)
	assert.Equal(t, "fast", *got.EFIDisk.Datastore)
	assert.Equal(t, "fast", *got.TPM.Datastore)
	assert.Equal(t, "/dev/disk/by-id/virtio-talos-system", *got.InstallDisk)
	assert.False(t, *got.OSDisk.SSD)
	disk := got.DataDisks()[0]
	assert.Equal(t, "sata1", disk.Interface())
	assert.Equal(t, "slow", *disk.Datastore)
	assert.False(t, *disk.Iothread)
	assert.Len(t, *disk.Serial, 20)
	assert.True(t, *full.Cluster.AllowSchedulingOnControlPlanes)
	assert.False(t, *full.Kubernetes.Proxy.Enabled)
	assert.Equal(t, "https://helm.cilium.io", *full.CNI.Cilium.Chart.Repository)
}

func TestAgentFollowsTheExtension(t *testing.T) {
	t.Parallel()
	for extension, want := range map[string]bool{
		"siderolabs/qemu-guest-agent": true, "qemu-guest-agent": true, "qemu-agent": true, "siderolabs/guest-agent": true,
		"iscsi": false, "example/qemu-guest-agent": false,
	} {
		c := small()
		c.Images = map[string]spec.Image{spec.DefaultImage: {Extensions: []string{extension}}}
		assert.Equal(t, want, *c.WithDefaults().Nodes[0].Agent, extension)
	}
}

func TestQuestionsAboutACluster(t *testing.T) {
	t.Parallel()
	c := small().WithDefaults()
	assert.Equal(t, "https://10.0.0.11:6443", c.Endpoint())
	c.Cluster.VIP = spec.Ptr("fd00::5")
	assert.Equal(t, "https://[fd00::5]:6443", c.Endpoint())
	c.Cluster.Endpoint = spec.Ptr("https://k8s.example.com")
	assert.Equal(t, "https://k8s.example.com", c.Endpoint())
	assert.Empty(t, spec.Config{}.Endpoint())

	c.Cluster.VIP = spec.Ptr("10.0.0.5")
	cp, ok := c.Node("ctrl-1")
	require.True(t, ok)
	assert.False(t, c.SchedulingOnControlPlanes())
	assert.True(t, c.KubeProxyEnabled())

	cp.Networks["admin"] = spec.Network{Index: spec.Ptr(0), DHCP: spec.Ptr(true)}
	lan := cp.Networks["lan"]
	lan.Index, lan.Address6 = spec.Ptr(1), spec.Ptr("fd00::11/64")
	cp.Networks["lan"] = lan
	assert.Equal(t, "admin", cp.Devices()[0].Name)
	name, _ := cp.PrimaryNetwork()
	assert.Equal(t, "lan", name, "the first with a static address")
	assert.Equal(t, netip.MustParseAddr("10.0.0.11"), cp.Address())
	assert.Equal(t, []netip.Addr{netip.MustParseAddr("10.0.0.11"), netip.MustParseAddr("fd00::11")}, cp.Addresses())
	assert.False(t, spec.NamedNode{}.Address().IsValid())
}

func TestPlacement(t *testing.T) {
	t.Parallel()
	hosts := []string{"alpha", "charlie", "foxtrot"}
	for name, want := range map[string]string{
		"cp-01": "alpha", "cp-02": "charlie", "cp-03": "foxtrot", "cp-04": "alpha", "ctrl-00": "foxtrot",
	} {
		got, ok := spec.PlaceIn(hosts, name)
		require.True(t, ok)
		assert.Equal(t, want, got, name)
	}
	// A name without a number stays, or moves to the host that came.
	for i := range 100 {
		name := fmt.Sprintf("n%dx", i)
		before, _ := spec.PlaceIn(hosts, name)
		after, _ := spec.PlaceIn(append(hosts, "tango"), name)
		if after != "tango" {
			assert.Equal(t, before, after)
		}
	}
	_, ok := spec.PlaceIn(nil, "cp-01")
	assert.False(t, ok)
}

func TestMACAddress(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for i := range 1000 {
		mac := spec.MACFor("prod", fmt.Sprintf("work-%d", i), "lan")
		assert.Regexp(t, "^[0-9a-f][26ae](:[0-9a-f]{2}){5}$", mac, "locally administered and unicast")
		assert.False(t, seen[mac])
		seen[mac] = true
	}
	assert.Equal(t, "6a:0e:94:4b:8b:0a", spec.MACFor("talos-dev", "ctrl-00", "lan"), "a change moves every deployed node")
}

func TestSecretsHide(t *testing.T) {
	t.Parallel()
	s := spec.NewSecret("hunter2")
	text, err := json.Marshal(map[string]any{"a": s, "b": &s})
	require.NoError(t, err)
	for _, shown := range []string{s.String(), fmt.Sprintf("%v %+v %#v %s", s, &s, s, struct{ S spec.Secret }{s}), string(text)} {
		assert.NotContains(t, shown, "hunter2")
	}
	var back spec.Secret
	require.NoError(t, back.UnmarshalText([]byte("hunter2")))
	assert.Equal(t, "hunter2", back.Reveal())
}

func TestQuantities(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]int{"8192": 8192, "8GiB": 8192, "8G": 8192, "8192MiB": 8192, "2048K": 2, "1T": 1 << 20} {
		var m spec.MiB
		require.NoError(t, m.UnmarshalText([]byte(text)))
		assert.Equal(t, want, int(m), text)
	}
	for text, want := range map[string]int{"128": 128, "500G": 500, "512GiB": 512, "1T": 1024, "2048M": 2} {
		var g spec.GiB
		require.NoError(t, g.UnmarshalText([]byte(text)))
		assert.Equal(t, want, int(g), text)
	}
	for _, text := range []string{"", "G", "-1", "8GB", "1.5G", "99999999999999T", "8 GiB", "1M"} {
		var g spec.GiB
		assert.Error(t, g.UnmarshalText([]byte(text)), text)
	}
}
