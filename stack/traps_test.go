// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package stack_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestTraps puts back what the shipped stacks correct of real definitions.
func TestTraps(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ stack, old, new, want string }{
		"pods over nodes": {
			"homelab", "podSubnets: [10.27.0.0/16]", "podSubnets: [10.25.0.0/16]",
			"cluster.podSubnets[0] (line 26): 10.25.0.0/16 overlaps the nodes' network 10.25.150.0/24: choose a network apart from it",
		},
		"no MAC address": {
			"homelab", "bc:24:11:25:15:01", "bc:24:11:XX:XX:X1",
			`nodes.ctrl-00.networks.lan.mac (line 85): "bc:24:11:XX:XX:X1" is no MAC address: write six pairs of hexadecimal digits, such as bc:24:11:00:00:01`,
		},
		"three control planes on the large host": {
			"homelab", "ctrl-01: {role: controlplane, vmId: 8102, allowSharedHost: true,", "ctrl-01: {role: controlplane, vmId: 8102,",
			"nodes.ctrl-01.host (line 88): host3 runs control plane ctrl-00 already while nuc runs none: choose another host, or set allowSharedHost to true",
		},
		"Talos version as chart version": {
			"cilium-argocd", "version: 1.18.0", "version: v1.12.4",
			"cni.cilium.chart.version (line 35): v1.12.4 is the version of Talos: give the version of the Cilium chart, such as 1.18.4",
		},
		"extension that is none": {
			"prod", "[lldp, qemu", "[lldpad, qemu",
			`image.extensions[0] (line 17): Talos v1.12.4 has no extension "lldpad"; did you mean siderolabs/lldpd?`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			text := read(t, shipped[c.stack])
			require.Contains(t, text, c.old)
			_, err := load(t, strings.Replace(text, c.old, c.new, 1))
			require.EqualError(t, err, "stack test: 1 problem\n  "+c.want)
		})
	}
}

// TestShippedStacksAreWhatTheyWere lists what the real definitions say of each node.
func TestShippedStacksAreWhatTheyWere(t *testing.T) {
	t.Parallel()
	want := map[string][]string{
		"dev": {
			"ctrl-00 controlplane ryzen-proxmox 800 2 2048 10 vmbr200=10.200.5.1/16",
			"ctrl-01 controlplane ryzen-proxmox 801 2 2048 10 vmbr200=10.200.5.2/16",
			"ctrl-02 controlplane ryzen-proxmox 802 2 2048 10 vmbr200=10.200.5.3/16",
		},
		"prod": {
			"prod-k8s-cp-01 controlplane alpha 6201 4 8192 128 dmz=192.168.62.21/24 vmbr1=192.168.192.21/24",
			"prod-k8s-cp-02 controlplane charlie 6202 4 8192 128 dmz=192.168.62.22/24 vmbr1=192.168.192.22/24",
			"prod-k8s-cp-03 controlplane foxtrot 6203 4 8192 128 dmz=192.168.62.23/24 vmbr1=192.168.192.23/24",
			"prod-k8s-worker-01 worker alpha 6301 10 49152 128 dmz=192.168.62.24/24 vmbr1=192.168.192.24/24 data=scsi1:512",
			"prod-k8s-worker-02 worker charlie 6302 10 49152 128 dmz=192.168.62.25/24 vmbr1=192.168.192.25/24 data=scsi1:512",
			"prod-k8s-worker-03 worker foxtrot 6303 10 49152 128 dmz=192.168.62.26/24 vmbr1=192.168.192.26/24 data=scsi1:512",
		},
		"homelab": {
			"ctrl-00 controlplane host3 8101 4 6144 20 vmbr0=10.25.150.11/24",
			"ctrl-01 controlplane host3 8102 4 6144 20 vmbr0=10.25.150.12/24",
			"ctrl-02 controlplane host3 8103 4 6144 20 vmbr0=10.25.150.13/24",
			"work-00 worker host3 8201 4 10240 20 vmbr0=10.25.150.21/24 longhorn=scsi1:180",
			"work-01 worker host3 8202 4 12240 20 vmbr0=10.25.150.22/24 longhorn=scsi1:180",
			"work-02 worker host3 8203 4 10240 20 vmbr0=10.25.150.23/24 longhorn=scsi1:500",
			"work-03 worker host3 8204 4 10240 20 vmbr0=10.25.150.24/24 longhorn=scsi1:180",
			"work-04 worker nuc 8205 4 10240 20 vmbr0=10.25.150.25/24 longhorn=scsi1:180",
		},
		"cilium-argocd": {
			"talos-cp-01 controlplane pve1 1001 2 4096 20 vmbr0=10.10.1.21/24",
			"talos-cp-02 controlplane pve2 1002 2 4096 20 vmbr0=10.10.1.22/24",
			"talos-cp-03 controlplane pve3 1003 2 4096 20 vmbr0=10.10.1.23/24",
			"talos-worker-01 worker pve1 1101 4 8192 20 vmbr0=10.10.1.31/24",
			"talos-worker-02 worker pve2 1102 4 8192 20 vmbr0=10.10.1.32/24",
		},
	}
	for name, path := range shipped {
		s, err := load(t, read(t, path))
		require.NoError(t, err)
		var got []string
		for _, n := range s.Nodes {
			line := fmt.Sprintf("%s %s %s %d %d %d %d", n.Name, *n.Role, *n.Host, *n.VMID, *n.CPU, *n.Memory, *n.OSDisk.Size)
			for _, d := range n.Devices() {
				line += fmt.Sprintf(" %s=%s", *d.Bridge, d.Prefixes()[0])
			}
			for _, d := range n.DataDisks() {
				line += fmt.Sprintf(" %s=%s:%d", d.Name, d.Interface(), *d.Size)
			}
			got = append(got, line)
		}
		assert.Equal(t, want[name], got, name)
	}
}

// TestSmallStart loads the counted example with one control plane and one worker.
func TestSmallStart(t *testing.T) {
	t.Parallel()
	text := strings.NewReplacer("count: 3", "count: 1", "count: 2", "count: 1").Replace(read(t, shipped["cilium-argocd"]))
	s, err := load(t, text)
	require.NoError(t, err)
	assert.Len(t, s.ControlPlanes(), 1)
	assert.Len(t, s.Workers(), 1)
}
