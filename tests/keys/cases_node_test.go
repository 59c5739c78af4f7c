// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package keys_test

import (
	"fmt"
	"strings"
)

// nodeCases are the keys of a node whose effect their type does not say how to show, for all the
// places where they can be written.
var nodeCases = map[string]keyCase{
	"host":                    {value: "two", without: "pve", given: "proxmox: {hosts: {two: {}}}"},
	"role":                    {value: "worker", without: "controlplane", refused: "odd number"},
	"vmId":                    {value: "999"},
	"size":                    {value: "large", given: "sizes: {large: {cpu: 7}}"},
	"image":                   {value: "other", given: "images: {other: {extensions: [iscsi-tools]}}"},
	"agent":                   {value: "false", given: "image: {extensions: [qemu-guest-agent]}"},
	"bootOrder":               {value: "[scsi0, net0, ide0]"},
	"cpuType":                 {value: "host"},
	"osDisk.speed.readBurst":  {node: "{osDisk: {speed: {read: 1}}}"},
	"osDisk.speed.writeBurst": {node: "{osDisk: {speed: {write: 1}}}"},
	"cpuFlags":                {value: "[+aes]"},
	"cpuAffinity":             {value: "0-1", given: rootGiven},
	"balloon":                 {value: "2048"},
	"hugepages":               {value: `"2"`, node: "{numa: true}"},
	"keepHugepages":           {value: "true", node: `{numa: true, hugepages: "2"}`},
	"hookScript":              {value: "local:snippets/one.sh", given: rootGiven},
	"kvmArguments":            {given: rootGiven},
	"installDisk":             {value: "/dev/disk/by-id/one"},
	"sysctls":                 {value: "{vm.nr_hugepages: '1'}"},
	"taints":                  {value: "{one: 'two:PreferNoSchedule'}"},
	"kernelModules":           {value: "{word: []}"},
	"dataVmId":                {value: "950", without: "951", node: "disks: {data: {size: 5, keepOnRebuild: true}}"},
	"bios":                    {value: "ovmf"},

	"patches[].inline": {value: patch},
	"patches[].file":   {value: "testdata/patch.yaml"},

	"numaNodes[].cpus":      {value: "0-1", without: "'0;1'", node: "{numa: true, numaNodes: [{memory: 4096}]}"},
	"numaNodes[].memory":    {value: "4096", without: "1024", node: "{numa: true, numaNodes: [{cpus: 0-1}]}", refused: "numaNodes"},
	"numaNodes[].hostNodes": {value: `"0"`, node: numaNode},
	"numaNodes[].policy":    {node: "{numa: true, numaNodes: [{cpus: 0-1, memory: 4096, hostNodes: \"0\"}]}"},
	"watchdog.model":        {value: "ib700", refused: "no driver"},

	"efiDisk.datastore":       {node: "{bios: ovmf}"},
	"efiDisk.type":            {node: "{bios: ovmf}"},
	"efiDisk.preEnrolledKeys": {node: "{bios: ovmf}"},
	"efiDisk.format":          {node: "{bios: ovmf}"},

	"gpu.mapping": {without: "other"},
	"gpu.devices": {value: "['0000:01:00.0']", without: "['0000:02:00.0']", given: rootGiven},
	"gpu.identities.*.id": {
		value: "10de:2684", without: "10de:2685", node: "gpu: {devices: ['0000:01:00.0']}",
	},
	"gpu.identities.*.subsystemId": {value: "10de:16a1", node: identified},
	"gpu.identities.*.iommuGroup":  {node: identified},
	"gpu.pcie":                     {node: mapped}, "gpu.romBar": {node: mapped}, "gpu.xvga": {node: mapped},
	"gpu.mdev":    {node: mapped},
	"gpu.romFile": {node: mapped},
	"gpu.vendor":  {value: "intel", node: mapped, given: openNode},
	"gpu.taint":   {node: "gpu: {mapping: one, vendor: intel}", given: openNode},

	"usb[].mapping": {without: "other"},
	"usb[].host":    {value: "'0bda:2838'", without: "'0bda:2839'", given: rootGiven},
	"usb[].usb3":    {node: "usb: [{mapping: one}]"},

	"ha.group": {given: shared}, "ha.state": {given: shared}, "ha.maxRestart": {given: shared},
	"ha.maxRelocate": {given: shared}, "ha.comment": {given: shared},

	"networks.*.mac":              {value: "'bc:24:11:00:00:01'"},
	"networks.*.mtu":              {value: "9000"},
	"networks.*.address":          {value: "10.1.0.9/24"},
	"networks.*.subnet":           {value: "10.1.0.0/24", without: "10.1.0.0/25", node: "networks: {net2: {address: 10.1.0.9}}"},
	"networks.*.gateway":          {value: "10.1.0.1", node: second},
	"networks.*.address6":         {value: "'fd00::9/64'"},
	"networks.*.subnet6":          {value: "'fd00::/64'", without: "'fd00::/80'", node: "networks: {net2: {address6: 'fd00::9'}}"},
	"networks.*.gateway6":         {value: "'fd00::1'", node: "networks: {net2: {address6: 'fd00::9/64'}}"},
	"networks.*.routes[].network": {value: "10.3.0.0/24", without: "10.4.0.0/24", node: second},
	"networks.*.routes[].gateway": {value: "10.1.0.2", node: routed},
	"networks.*.routes[].metric":  {node: routed},

	"osDisk.size":          {value: "50"},
	"osDisk.serial":        {node: "osDisk: {type: virtio}"},
	"osDisk.mountpoint":    {value: "/var/mnt/one", refused: "is for data disks"},
	"osDisk.filesystem":    {refused: "is for data disks"},
	"osDisk.keepOnRebuild": {refused: "is for data disks"},
}

// rootGiven is what settings need that Proxmox allows root@pam only.
const rootGiven = "proxmox: {username: root@pam, password: secret}"

const (
	shared     = "image: {datastoreHost: pve}"
	openNode   = "{image: {extensions: [i915]}, nodes: {w9: {role: worker, vmId: 990, gpu: {mapping: one, taint: false}, networks: {lan: {address: 10.0.0.99/24}}}}}"
	numaNode   = "{numa: true, numaNodes: [{cpus: 0-1, memory: 4096}]}"
	mapped     = "gpu: {mapping: one}"
	identified = "gpu: {devices: ['0000:01:00.0'], identities: {'0000:01:00.0': {id: '10de:2684'}}}"
	second     = "networks: {net2: {address: 10.1.0.9/24}}"
	routed     = "networks: {net2: {address: 10.1.0.9/24, routes: [{network: 10.3.0.0/24}]}}"
)

// ofOneNode are the keys that are refused where they would be for several nodes.
var ofOneNode = map[string]string{
	"vmId": "belongs to one node", "hostname": "belongs to one node", "networks.*.mac": "belongs to one node",
}

// ofNoGroup are those that are refused where they would be for nodes that have nothing in common.
var ofNoGroup = map[string]string{
	"role": "belongs to a node or a pool", "networks.*.address": "belongs to one node, or to a pool",
	"networks.*.address6": "belongs to one node, or to a pool",
}

// nodeCase returns the case of a key of a node at one of the places where it can be written.
func nodeCase(start, key string) keyCase {
	group := strings.HasPrefix(start, "defaults.") || start == "sizes.*."
	c := nodeCases[key]
	if disk, ok := strings.CutPrefix(key, "disks.*."); ok {
		c = diskCase(disk)
	}
	if message, refused := ofOneNode[key]; refused && (group || start == "pools.*.") {
		c.refused = message
	}
	if message, refused := ofNoGroup[key]; refused && group {
		c.refused, c.without = message, ""
	}
	if key == "allowSharedHost" {
		c = sharedHostCase(start)
	}
	if key == "size" && start == "sizes.*." {
		c.refused = "a size cannot name another size"
	}

	return c
}

// sharedHostCase has two control planes on one host while another host has none.
func sharedHostCase(start string) keyCase {
	hosts := "{proxmox: {hosts: {two: {}, three: {}}}, nodes: {c1: {host: pve, vmId: 701}, " +
		"c3: {role: controlplane, host: two, networks: {lan: {address: 10.0.0.13/24}}}"
	c := keyCase{value: "true", refused: "allowSharedHost"}
	switch start {
	case "defaults.worker.":
		c.refused = "is for control planes"
	case "defaults.all.", "defaults.controlPlane.":
		c.given = hosts + ", c2: {role: controlplane, host: pve, networks: {lan: {address: 10.0.0.12/24}}}}}"
	case "sizes.*.", "nodes.*.":
		c.given = hosts + ", w1: {role: controlplane, host: pve}}}"
	default:
		c.given, c.node = hosts+"}}", "{role: controlplane, host: pve}"
	}

	return c
}

// diskCase returns the case of a key of a data disk.
func diskCase(key string) keyCase {
	c := map[string]keyCase{
		"size":          {without: "20", value: "30"},
		"mountpoint":    {value: "/var/mnt/data"},
		"filesystem":    {node: "disks: {data: {size: 20, mountpoint: /var/mnt/data}}"},
		"keepOnRebuild": {node: "{dataVmId: 950, disks: {data: {size: 20, unitNumber: 1}, kept: {size: 5, unitNumber: 2, keepOnRebuild: true}}}"},
		"unitNumber":    {value: "5"},
	}[key]
	if limit, ok := strings.CutPrefix(key, "speed."); ok {
		c.refused = "must be the same as osDisk.speed"
		if limit, burst := strings.CutSuffix(limit, "Burst"); burst {
			c.node = fmt.Sprintf("{osDisk: {speed: {%[1]s: 1}}, disks: {data: {size: 20, speed: {%[1]s: 1}}}}", limit)
		}
	}
	if c.node == "" {
		c.node = "disks: {data: {size: 20}}"
	}

	return c
}
