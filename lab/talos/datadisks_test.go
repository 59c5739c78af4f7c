// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package talos_test

import (
	"bytes"
	"fmt"
	"sync"
	"testing"

	"github.com/siderolabs/talos/pkg/machinery/config/machine"
	"github.com/siderolabs/talos/pkg/machinery/config/types/v1alpha1"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/talos-proxmox/talos-proxmox/lab/site/guest"
)

// dataDisk returns a disk beside a machine's own, which outlives it.
func dataDisk(device, serial string) *guest.Disk {
	var (
		mu   sync.Mutex
		held []byte
	)

	return &guest.Disk{
		Device: device, Serial: serial, Size: 5 << 30, DeviceID: "drive-" + device, Controller: "virtio-scsi-single",
		Load: func() []byte {
			mu.Lock()
			defer mu.Unlock()

			return bytes.Clone(held)
		},
		Store: func(content []byte) error {
			mu.Lock()
			defer mu.Unlock()
			held = bytes.Clone(content)

			return nil
		},
	}
}

const userVolume = `---
apiVersion: v1alpha1
kind: UserVolumeConfig
name: data
provisioning:
  diskSelector: {match: '"/dev/disk/by-id/scsi-0QEMU_QEMU_HARDDISK_drive-scsi2" in disk.symlinks'}
  grow: true
  minSize: 1GiB
`

// TestDataDisksAreFormattedOnce: a file system that is there already is mounted as it is, also by a
// machine that is new.
func TestDataDisksAreFormattedOnce(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	c := b.cluster()
	disks := []*guest.Disk{dataDisk("scsi1", "longhorn"), dataDisk("scsi2", "user")}
	config := append(c.config(machine.TypeControlPlane, "cp-1", func(cfg *v1alpha1.Config) {
		cfg.MachineConfig.MachineDisks = []*v1alpha1.MachineDisk{{ // what disks outside /var/mnt need
			DeviceName:     "/dev/disk/by-id/scsi-0QEMU_QEMU_HARDDISK_drive-scsi1",
			DiskPartitions: []*v1alpha1.DiskPartition{{DiskMountPoint: "/var/lib/longhorn"}},
		}}
	}), userVolume...)
	mounts := func(want int) {
		b.eventually(fmt.Sprintf("%d file systems were mounted", want), func() error {
			if got := len(b.trace.events("volume.mount")); got < want {
				return fmt.Errorf("%d of %d", got, want)
			}

			return nil
		})
	}

	first := b.vm(1, func(m *guest.Machine) { m.Disks = append(m.Disks, disks...) })
	first.on()
	b.apply(first, config)
	mounts(2)
	first.cut()
	again := b.vm(1, func(m *guest.Machine) { m.UUID = "another"; m.Disks = append(m.Disks, disks...) })
	again.on()
	b.apply(again, config)
	mounts(4)

	formatted := b.trace.events("volume.format")
	require.Len(t, formatted, 2, "never a second time")
	byVolume := map[string]map[string]bool{}
	for _, e := range b.trace.events("volume.mount") {
		if byVolume[e.Attrs["volume"]] == nil {
			byVolume[e.Attrs["volume"]] = map[string]bool{}
		}
		byVolume[e.Attrs["volume"]][e.Attrs["uuid"]] = true
	}
	assert.Len(t, byVolume["u-data"], 1)
	assert.Len(t, byVolume["/var/lib/longhorn"], 1)
}
