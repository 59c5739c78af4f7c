// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package stack_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const pools = `config:
  talos-proxmox:proxmox:
    hosts: {alpha: {datastore: fast}, charlie: {}, foxtrot: {zone: rack-3}}
  talos-proxmox:image: {extensions: [qemu-guest-agent]}
  talos-proxmox:images: {gpu: {boot: iso, kernelArgs: [quiet]}}
  talos-proxmox:cluster: {name: pools, vmIdBase: 1000}
  talos-proxmox:sizes: {small: {cpu: 1, disks: {data: {size: 10, datastore: slow}}}, large: {cpu: 8}}
  talos-proxmox:defaults:
    all: {networks: {lan: {subnet: 10.0.0.0/16, gateway: 10.0.0.1}}}
    worker: {size: small, kernelModules: {a: []}}
  talos-proxmox:pools:
    cp: {role: controlplane, count: 1, prefix: master, networks: {lan: {address: 10.0.0.11}}}
    listed:
      role: worker
      hosts: [foxtrot, alpha]
      vmIdBase: 3000
      kernelModules: {b: [x]}
      members:
        - networks: {lan: {address: 10.0.1.4}}
        - {size: large, image: gpu, networks: {lan: {address: 10.0.0.5}}}
        - {name: special, vmId: 77777, networks: {lan: {address: 10.0.0.6}}}
    late: {role: worker, count: 2, first: 10, networks: {lan: {address: 10.0.2.10}}}
  talos-proxmox:nodes:
    listed-260: {host: charlie, kernelModules: {c: []}}
    late-11: {networks: {lan: {address: 10.0.9.9}}, disks: {data: {datastore: own}}}
`

func TestPools(t *testing.T) {
	t.Parallel()
	s, err := load(t, pools)
	require.NoError(t, err)
	var got []string
	for _, n := range s.Nodes {
		line := fmt.Sprintf("%s %s %d %s %d", n.Name, *n.Host, *n.VMID, n.Address(), *n.CPU)
		for _, d := range n.DataDisks() {
			line += fmt.Sprintf(" %s/%s", d.Name, *d.Datastore)
		}
		got = append(got, line)
	}
	assert.Equal(t, []string{
		"master-01 alpha 1001 10.0.0.11 2",
		"late-10 alpha 1110 10.0.2.10 1 data/fast",
		"late-11 charlie 1111 10.0.9.9 1 data/own",
		"listed-05 foxtrot 3005 10.0.0.5 8",
		"listed-260 charlie 3260 10.0.1.4 1 data/slow",
		"special foxtrot 77777 10.0.0.6 1 data/slow",
	}, got)

	n, ok := s.Node("listed-260")
	require.True(t, ok)
	assert.Equal(t, map[string][]string{"a": {}, "b": {"x"}, "c": {}}, n.KernelModules, "maps merge key by key")
	n, ok = s.Node("listed-05")
	require.True(t, ok)
	img := s.Image(n)
	assert.Equal(t, []string{"qemu-guest-agent"}, img.Extensions, "a variant takes from image what it leaves out")
	assert.Equal(t, []string{"quiet"}, img.KernelArgs)
	assert.Equal(t, "rack-3", *n.Zone)
	assert.Empty(t, s.Images["default"].KernelArgs)
}

func TestBooleansCanBeTurnedOff(t *testing.T) {
	t.Parallel()
	s, err := load(t, `config:
  talos-proxmox:proxmox: {defaultHost: pve1}
  talos-proxmox:cluster: {name: off}
  talos-proxmox:defaults: {all: {onBoot: true, protection: true, tags: [a, b], osDisk: {iothread: true}, cpuLimit: 1}}
  talos-proxmox:nodes:
    cp-1: {role: controlplane, vmId: 100, onBoot: false, protection: false, tags: [], osDisk: {iothread: false}, cpuLimit: 0, networks: {lan: {address: 10.0.0.11/24}}}
`)
	require.NoError(t, err)
	n := s.Nodes[0]
	assert.False(t, *n.OnBoot)
	assert.False(t, *n.Protection)
	assert.False(t, *n.OSDisk.Iothread)
	assert.Zero(t, *n.CPULimit)
	assert.Empty(t, n.Tags, "an empty list replaces a list")
}
