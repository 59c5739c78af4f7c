// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package tests_test

import "strings"

const (
	firstUp    = "the first `up`"
	moreMemory = "an edit: more memory"
	newTalos   = "an edit: a newer Talos"

	oldTalos, newerTalos = "v1.12.4", "v1.12.5"

	// rightSum stands for the checksum of the boot image, which an up that wants another one tells.
	rightSum = "RIGHT"
)

var (
	fullDatastore = scenario{
		name: "datastore full", what: "the datastore for disks is full", doing: firstUp,
		faults: []string{"datastore-full storage=local-lvm"},
		says:   []string{"unable to create VM 800 - lvcreate 'pve/vm-800-disk-0' error:   Cannot create new thin volume"},
	}
	noReturnFromReboot = scenario{
		name: "no return from a reboot", what: "a node does not return from its reboot", doing: moreMemory,
		faults: []string{"no-return node=ctrl-00"}, edits: memory("ctrl-00: {role", "3072"),
		says: []string{
			"after node ctrl-00 (10.200.5.1) was down: it is not back after 45s",
			"look at: the console of ctrl-00; is it powered on, is 10.200.5.1 its address",
		},
	}
)

// memory returns an edit of one node's memory; before is what stands there.
func memory(before, after string) []string {
	if strings.HasPrefix(before, "ctrl") {
		return []string{before, strings.TrimSuffix(before, "role") + "memory: " + after + ", role"}
	}

	return []string{before, "memory: " + after + ", role"}
}

// creations returns faults that meet a first up.
func creations() []scenario {
	return []scenario{
		fullDatastore,
		{
			name: "task fails", what: "the task that starts a VM fails", doing: firstUp,
			faults: []string{"task-error type=qmstart"},
			says:   []string{"creating faulty-ctrl-00-vm: error waiting for VM start", "start failed: QEMU exited with code 1"},
			again:  []string{"--refresh"},
		},
		{
			name: "task hangs", what: "the task that starts a VM hangs", doing: firstUp,
			faults: []string{"task-hang type=qmstart"},
			says:   []string{"timeout while waiting for task"},
		},
		{
			name: "creation hangs", what: "the task that makes a VM hangs", doing: firstUp,
			faults: []string{"task-hang type=qmcreate"},
			says:   []string{"creating faulty-ctrl-00-vm", "timeout while waiting for task"},
		},
		{
			name: "download cut", what: "the download of the boot image breaks off", doing: firstUp,
			faults: []string{"download-cut host=*"},
			says:   []string{"download failed: exit code 4"},
		},
		{
			name: "wrong checksum", what: "the boot image is not what its checksum says", doing: firstUp,
			wrong: []string{
				"extensions: [siderolabs/qemu-guest-agent]", "extensions: [siderolabs/qemu-guest-agent]\n    checksum: sha256:" + strings.Repeat("0", 64),
			},
			says: []string{"checksum mismatch: got '", "' != expect '" + strings.Repeat("0", 64) + "'"},
		},
		{
			name: "other bytes", what: "a host downloads other bytes than the checksum wants", doing: firstUp,
			faults: []string{"wrong-checksum host=*"},
			wrong: []string{
				"extensions: [siderolabs/qemu-guest-agent]", "extensions: [siderolabs/qemu-guest-agent]\n    checksum: sha256:" + rightSum,
			},
			says: []string{"checksum mismatch: got '", "' != expect '"},
		},
		{
			name: "factory silent", what: "the Image Factory takes the call and never answers", doing: firstUp,
			faults: []string{"api-timeout api=web call=/schematics"},
			says: []string{
				"registering the schematic of image", "the Image Factory https://factory.talos.dev did not answer within 1m0s",
				"look at: curl -v https://factory.talos.dev/version; when it answers, run `pulumi up` again",
			},
		},
		{
			name: "factory down", what: "the Image Factory answers 503", doing: firstUp,
			faults: []string{"api-error api=web call=/schematics status=503"},
			says:   []string{"failed to create schematic: HTTP 503: Service Unavailable"},
		},
		{
			name: "API error", what: "Proxmox VE's API answers 500", doing: firstUp,
			faults: []string{"api-error api=proxmox call=/nodes/*/qemu method=POST"},
			says:   []string{"received an HTTP 500 response - Reason: Internal Server Error"},
		},
		{
			name: "API silent", what: "Proxmox VE's API takes a call and never answers", doing: firstUp,
			faults: []string{"api-timeout api=proxmox call=/nodes/*/qemu method=POST"},
			says:   []string{"context deadline exceeded"},
		},
		{
			name: "API slow", what: "Proxmox VE's API answers each call half a second late", doing: firstUp,
			faults: []string{"api-slow api=proxmox by=500ms"}, survives: true,
		},
		{
			name: "host down", what: "the host has no power", doing: firstUp,
			faults: []string{"host-down host=ryzen-proxmox"},
			says:   []string{"no route to host"},
		},
		{
			name: "node lost before apply", what: "a node is lost before its configuration is applied", doing: firstUp,
			faults: []string{"node-lost node=ctrl-00 when=before-apply later=yes"},
			says:   []string{"node ctrl-00 (10.200.5.1) did not take its configuration", "look at: the console of ctrl-00; is it powered on"},
		},
		{
			name: "node lost during apply", what: "a node is lost while its configuration is applied", doing: firstUp,
			faults: []string{"node-lost node=ctrl-00 when=during-apply later=yes"},
			says:   []string{"node ctrl-00 (10.200.5.1) did not take its configuration", "look at: the console of ctrl-00; is it powered on"},
		},
		{
			name: "node lost after apply", what: "a node is lost after its configuration was applied", doing: firstUp,
			faults: []string{"node-lost node=ctrl-00 when=after-apply later=yes"},
			says: []string{
				"bootstrapping on node ctrl-00 (10.200.5.1): not possible after 1m0s", "look at: the console of ctrl-00; is 10.200.5.1 its address",
			},
		},
		{
			name: "Talos API silent", what: "a node's Talos API takes the configuration and never answers", doing: firstUp,
			faults: []string{"api-timeout api=talos node=ctrl-00 call=ApplyConfiguration later=yes"},
			says:   []string{"node ctrl-00 (10.200.5.1) did not take its configuration"},
		},
		{
			name: "Talos API error", what: "a node's Talos API answers with an error", doing: firstUp,
			faults: []string{"api-error api=talos node=ctrl-00 call=ApplyConfiguration later=yes"},
			says:   []string{"node ctrl-00 (10.200.5.1) did not take its configuration"},
		},
		{
			name: "clock", what: "a node's clock is not synchronised", doing: firstUp,
			faults: []string{"clock-skew node=ctrl-00 by=10m later=yes"},
			says:   []string{"time is not in sync yet"},
		},
	}
}

// edits returns faults that meet an edit of a cluster of three.
func edits() []scenario {
	return []scenario{
		noReturnFromReboot,
		{
			name: "no return from an upgrade", what: "a node does not return from its upgrade", doing: newTalos,
			faults: []string{"no-return node=ctrl-01"}, edits: []string{"version: " + oldTalos, "version: " + newerTalos},
			says: []string{
				"upgrading node ctrl-01 (10.200.5.2): it is not back with Talos v1.12.5 (ce4c980550dd) after 1m0s",
				"look at: the console of ctrl-01; when it is back, run `pulumi up` again",
			},
		},
		{
			name: "etcd lost", what: "etcd does not run on another control plane", doing: moreMemory,
			faults: []string{"etcd-lost node=ctrl-02"}, edits: memory("memory: 3072, role", "4096"),
			says: []string{"before node ctrl-00 (10.200.5.1) goes down", `check "etcd is healthy on every control plane" fails on node ctrl-02 (10.200.5.3)`},
		},
		{
			name: "node lost", what: "another node is lost", doing: moreMemory,
			faults: []string{"node-lost node=ctrl-01"}, edits: memory("memory: 4096, role", "5120"),
			says: []string{
				"before node ctrl-00 (10.200.5.1) goes down", `check "the Talos API answers on every node" fails on node ctrl-01 (10.200.5.2)`,
			},
		},
		{
			name: "certificate", what: "the certificate of a node's Talos API has expired", doing: moreMemory,
			faults: []string{"certificate-expired node=ctrl-01"}, edits: memory("memory: 5120, role", "6144"),
			says: []string{"certificate has expired or is not yet valid", "ctrl-01 (10.200.5.2)"},
		},
		{
			name: "host down", what: "the only host has no power", doing: moreMemory,
			faults: []string{"host-down host=ryzen-proxmox"}, edits: memory("memory: 6144, role", "8192"),
			says: []string{"updating faulty-ctrl-00-vm: error retrieving VM 800", "ryzen-proxmox.example.com:8006: no route to host"},
		},
		{
			name: "API server flaps", what: "a control plane's API server comes and goes", doing: moreMemory,
			faults: []string{"kube-flap node=ctrl-00 up=1s down=1s"}, edits: memory("memory: 8192, role", "7168"), survives: true,
		},
		{
			name: "Talos API error", what: "another node's Talos API answers with an error", doing: moreMemory,
			faults: []string{"api-error api=talos node=ctrl-01"}, edits: memory("memory: 7168, role", "6144"),
			says: []string{
				"before node ctrl-00 (10.200.5.1) goes down", `check "the Talos API answers on every node" fails on node ctrl-01 (10.200.5.2)`,
			},
		},
		{
			name: "Talos API silent", what: "another node's Talos API takes calls and never answers", doing: moreMemory,
			faults: []string{"api-timeout api=talos node=ctrl-01"}, edits: memory("memory: 6144, role", "5120"),
			says: []string{
				"before node ctrl-00 (10.200.5.1) goes down", `check "the Talos API answers on every node" fails on node ctrl-01 (10.200.5.2)`,
			},
		},
		{
			name: "Talos API slow", what: "every Talos API answers each call half a second late", doing: moreMemory,
			faults: []string{"api-slow api=talos by=500ms"}, edits: memory("memory: 5120, role", "4096"), survives: true,
		},
		{
			name: "clock", what: "another node's clock is ten years ahead", doing: moreMemory,
			faults: []string{"clock-skew node=ctrl-01 by=87600h"}, edits: memory("memory: 4096, role", "3072"),
			says: []string{"before node ctrl-00 (10.200.5.1) goes down", "fails on node ctrl-01 (10.200.5.2)"},
		},
	}
}
