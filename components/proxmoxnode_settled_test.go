// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package components_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/talos-proxmox/talos-proxmox/spec"
)

// The provider wants to write its own notion of nothing for a speed without limits and for a drive that
// is not said, at every preview; nothing of that may be left to it.
func TestWhatTheProviderWouldWriteForEver(t *testing.T) {
	t.Parallel()

	const speed0, speed1, file, cd = "disks[0].speed", "disks[1].speed", "disks[0].fileId", "cdrom"
	const efi, smbios, template, tpm = "efiDisk", "smbios", "template", "tpmState"
	limit := &spec.DiskSpeed{Read: spec.Ptr(100)}
	empty := map[string]any{"enabled": true, "fileId": "none", "interface": "ide0"}

	for name, c := range map[string]struct {
		edit    func(*spec.NamedNode, *spec.Image)
		ignored []string
		cd      any
	}{
		"one disk": {
			func(*spec.NamedNode, *spec.Image) {},
			[]string{file, efi, smbios, template, tpm, speed0}, map[string]any{"enabled": true, "fileId": fileID, "interface": "ide0"},
		},
		"limited": {
			func(n *spec.NamedNode, _ *spec.Image) { n.OSDisk.Speed = limit },
			[]string{file, efi, smbios, template, tpm}, map[string]any{"enabled": true, "fileId": fileID, "interface": "ide0"},
		},
		"two disks from a disk image": {
			func(n *spec.NamedNode, i *spec.Image) {
				n.Disks = map[string]spec.Disk{"data": {Size: spec.Ptr(spec.GiB(50)), UnitNumber: spec.Ptr(1)}}
				i.Boot = spec.Ptr("disk")
			},
			[]string{file, efi, smbios, template, tpm, speed0, speed1}, empty,
		},
		"ARM": {
			func(n *spec.NamedNode, i *spec.Image) {
				i.Boot, i.Arch, n.BIOS = spec.Ptr("disk"), spec.Ptr("arm64"), spec.Ptr("ovmf")
			},
			[]string{file, efi, smbios, template, tpm, speed0, cd}, nil,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			args := devNode()
			args.Proxmox.SSH = &spec.SSH{Username: "root"}
			c.edit(&args.Node, &args.Image)
			r := register(t, false, args)
			vm := r.Register("ctrl-00-vm")
			assert.Equal(t, c.ignored, vm.GetIgnoreChanges())
			assert.Equal(t, c.cd, vm.GetObject().AsMap()["cdrom"])
		})
	}
}

func TestHolderOfKeptDisksIsLeftAlone(t *testing.T) {
	t.Parallel()

	args := devNode()
	args.Node.DataVMID = spec.Ptr(900)
	args.Node.Disks = map[string]spec.Disk{"kept": {Size: spec.Ptr(spec.GiB(50)), UnitNumber: spec.Ptr(1), KeepOnRebuild: spec.Ptr(true)}}
	r := register(t, false, args)
	assert.Equal(t, []string{"disks[0].speed", "cdrom"}, r.Register("ctrl-00-data").GetIgnoreChanges())
}
