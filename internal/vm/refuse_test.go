// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package vm_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/talos-proxmox/talos-proxmox/internal/check"
	"github.com/talos-proxmox/talos-proxmox/internal/vm"
)

// node returns what a worker was.
func node() vm.Identity {
	return vm.Identity{
		Host: "alpha", VMID: 800, Migrate: true, Role: "worker", Address: "10.0.0.5", System: "nocloud amd64",
		EFIDisk: "4m raw", EFIDatastore: "local-lvm", TPM: "v2.0", TPMDatastore: "local-lvm",
		Disks: map[string]vm.Disk{
			"scsi0": {Field: "osDisk", Size: 10, Format: "raw"},
			"scsi1": {Field: "disks.longhorn", Size: 500, Format: "raw"},
		},
	}
}

const (
	rebuild = "; to have the node rebuilt, raise lifecycle.replace: {work-01: <number>}"
	loses   = ": this replaces the VM and loses what is on its disks; permit it with lifecycle.allowReplace: {work-01: "
)

func TestRefuse(t *testing.T) {
	t.Parallel()

	for name, c := range map[string]struct {
		was, now func(*vm.Identity)
		allowed  []string
		problems []string
	}{
		"nothing changes":          {},
		"a new host moves it live": {now: func(i *vm.Identity) { i.Host = "charlie" }},
		"a new host without migrate": {
			now:      func(i *vm.Identity) { i.Host, i.Migrate = "charlie", false },
			problems: []string{"host: was alpha, is now charlie" + loses + "[host]}"},
		},
		"the same, permitted": {now: func(i *vm.Identity) { i.Host, i.Migrate = "charlie", false }, allowed: []string{"host"}},
		"what cannot move": {
			was:      func(i *vm.Identity) { i.Fixed = []string{"a PCI device is passed through (gpu)"} },
			now:      func(i *vm.Identity) { i.Host = "charlie" },
			problems: []string{"host: was alpha, is now charlie: the VM cannot move live, since a PCI device is passed through (gpu)"},
		},
		"what high availability placed": {
			was: func(i *vm.Identity) { i.HA = true },
			now: func(i *vm.Identity) { i.Host, i.HA = "charlie", true },
			problems: []string{"host: was alpha, is now charlie: with ha Proxmox VE chooses the host; " +
				"migrate the VM there, or remove ha first"},
		},
		"ids": {
			now:      func(i *vm.Identity) { i.VMID = 801 },
			problems: []string{"vmId: was 800, is now 801" + loses + "[vmId]}"},
		},
		"another id is permitted, not this": {
			now:      func(i *vm.Identity) { i.VMID = 801 },
			allowed:  []string{"host"},
			problems: []string{"vmId: was 800, is now 801" + loses + "[vmId]}"},
		},
		"firmware": {
			now: func(i *vm.Identity) { i.EFIDisk, i.TPM = "", "v1.2" },
			problems: []string{
				"efiDisk: was 4m raw, is now none" + loses + "[efiDisk]}",
				"tpm: was v2.0, is now v1.2" + loses + "[tpm]}",
			},
		},
		"firmware, all permitted": {now: func(i *vm.Identity) { i.EFIDisk, i.TPM = "", "v1.2" }, allowed: []string{"*"}},
		"small volumes never move": {
			now: func(i *vm.Identity) { i.EFIDatastore, i.TPMDatastore = "ceph", "ceph" }, allowed: []string{"*"},
			problems: []string{
				"efiDisk.datastore: was local-lvm, is now ceph: the provider makes an empty volume there, " +
					"and the UEFI variables would be lost" + rebuild,
				"tpm.datastore: was local-lvm, is now ceph: the provider makes an empty volume there, " +
					"and the TPM state, and what is encrypted with it, would be lost" + rebuild,
			},
		},
		"a disk grows":       {now: func(i *vm.Identity) { resize(i, "scsi1", 600) }},
		"a disk is added":    {now: func(i *vm.Identity) { i.Disks["scsi2"] = vm.Disk{Field: "disks.more", Size: 1} }},
		"a disk gets a name": {now: func(i *vm.Identity) { rename(i, "scsi1", "disks.storage") }},
		"a disk shrinks": {
			now: func(i *vm.Identity) { resize(i, "scsi1", 180) }, allowed: []string{"*"},
			problems: []string{"disks.longhorn.size: was 500 GiB, is now 180 GiB: a disk cannot shrink, " +
				"since what is at its end would be lost" + rebuild},
		},
		"a disk is removed": {
			now: func(i *vm.Identity) { delete(i.Disks, "scsi1") },
			problems: []string{"disks.longhorn: the disk at scsi1 was removed: the provider removes no disk, " +
				"and the 500 GiB on it would be lost" + rebuild},
		},
		"a disk changes its slot": {
			now: func(i *vm.Identity) { i.Disks["scsi4"] = i.Disks["scsi1"]; delete(i.Disks, "scsi1") },
			problems: []string{"disks.longhorn: the disk at scsi1 was moved to scsi4: the provider removes no disk, " +
				"and the 500 GiB on it would be lost" + rebuild},
		},
		"identity in the cluster": {
			now: func(i *vm.Identity) { i.Address, i.Role, i.System = "10.0.0.6", "controlplane", "nocloud arm64" },
			problems: []string{
				"image: the system on the disk is nocloud amd64; nocloud arm64 would have to be reinstalled" + rebuild,
				"networks: the node's address was 10.0.0.5, is now 10.0.0.6: etcd and Kubernetes know the node by it" + rebuild,
				"role: was worker, is now controlplane: a node cannot change its role" + rebuild,
			},
		},
		"all of it with a rebuild that permits what replaces VMs by itself": {now: func(i *vm.Identity) {
			*i = vm.Identity{Rebuild: 1, Host: "charlie", VMID: 801, Role: "controlplane", System: "nocloud arm64"}
		}, allowed: []string{"host", "efiDisk", "tpm"}},
		"a rebuild with what replaces VMs by itself": {
			now: func(i *vm.Identity) {
				*i = vm.Identity{Rebuild: 1, Host: "charlie", VMID: 801, Role: "controlplane", System: "nocloud arm64"}
			},
			problems: []string{
				"efiDisk: was 4m raw at local-lvm, is now none: for the rebuilt VM to have it, permit the edit too, with lifecycle.allowReplace: {work-01: [efiDisk]}",
				"host: was alpha, is now charlie: for the rebuilt VM to have it, permit the edit too, with lifecycle.allowReplace: {work-01: [host]}",
				"tpm: was v2.0 at local-lvm, is now none: for the rebuilt VM to have it, permit the edit too, with lifecycle.allowReplace: {work-01: [tpm]}",
			},
		},
		"kept disks stay, with a rebuild too": {
			was: keep,
			now: func(i *vm.Identity) {
				keep(i)
				i.Rebuild, i.Host, i.DataVMID = 1, "charlie", 901
				resize(i, "scsi1", 180)
			},
			allowed: []string{"*"},
			problems: []string{
				"dataVmId: was 900, is now 901: the VM that holds the kept disks would be replaced, and they with it",
				"disks.longhorn: is kept on rebuild (keepOnRebuild) with 500 GiB as raw at scsi1, and must stay so: " +
					"its data would be lost; take the data elsewhere and remove the node",
				"host: was alpha, is now charlie: the node's kept disks (keepOnRebuild) stay on their host",
			},
		},
		"the last limit taken away, in a rebuild too": {
			was: func(i *vm.Identity) { limit(i, "scsi1") },
			now: func(i *vm.Identity) { i.Rebuild++ },
			problems: []string{"disks.longhorn.speed: was taken away, and the provider would leave the limits as they are: " +
				"write one that never binds in its place, speed: {iopsRead: 1000000}"},
		},
		"another limit": {
			was: func(i *vm.Identity) { limit(i, "scsi1") },
			now: func(i *vm.Identity) { limit(i, "scsi1") },
		},
		"a disk to be kept from now on": {
			now: keep,
			problems: []string{"disks.longhorn.keepOnRebuild: is now true: the disk would get another owner, " +
				"and its data would be lost" + rebuild},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			was, now := node(), node()
			for edit, id := range map[*vm.Identity]func(*vm.Identity){&was: c.was, &now: c.now} {
				if id != nil {
					id(edit)
				}
			}
			var l check.List
			vm.Refuse("work-01", was, now, c.allowed, &l)
			var got []string
			for _, problem := range l.Problems() {
				got = append(got, problem.String())
			}
			assert.Equal(t, c.problems, got)
		})
	}
}

func resize(i *vm.Identity, slot string, size int) {
	disk := i.Disks[slot]
	disk.Size = size
	i.Disks[slot] = disk
}

func rename(i *vm.Identity, slot, field string) {
	disk := i.Disks[slot]
	disk.Field = field
	i.Disks[slot] = disk
}

func keep(i *vm.Identity) {
	i.DataVMID = 900
	disk := i.Disks["scsi1"]
	disk.Kept = true
	i.Disks["scsi1"] = disk
}

func limit(i *vm.Identity, slot string) {
	disk := i.Disks[slot]
	disk.Limited = true
	i.Disks[slot] = disk
}
