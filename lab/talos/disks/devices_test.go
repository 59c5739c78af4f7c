// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package disks_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/talos-proxmox/talos-proxmox/lab/site/guest"
	"github.com/talos-proxmox/talos-proxmox/lab/talos/disks"
)

func disk(device string, change ...func(*guest.Disk)) *guest.Disk {
	d := &guest.Disk{Device: device, Size: 12884901888, DeviceID: "drive-" + device, Controller: "virtio-scsi-pci"}
	for _, c := range change {
		c(d)
	}

	return d
}

func serial(d *guest.Disk) { d.Serial = "mine" }

func single(d *guest.Disk) { d.Controller = "virtio-scsi-single" }

// TestWhatHardwareHasOfADisk compares with what Talos and udev make of QEMU's disks: a serial number is published of
// virtio-blk disks alone.
func TestWhatHardwareHasOfADisk(t *testing.T) {
	for name, c := range map[string]struct {
		disk                 *guest.Disk
		board                string
		serial, transport    string
		busPath, link, place string
	}{
		"scsi": {
			disk("scsi1", serial), "", "", "virtio", "/pci0000:00/0000:00:05.0/virtio2/host2/target2:0:0/2:0:0:1",
			"/dev/disk/by-id/scsi-0QEMU_QEMU_HARDDISK_drive-scsi1", "/dev/disk/by-path/pci-0000:00:05.0-scsi-0:0:0:1",
		},
		"scsi with its own controller": {
			disk("scsi1", single), "", "", "virtio", "/pci0000:00/0000:00:05.0/0000:01:02.0/virtio3/host3/target3:0:0/3:0:0:1",
			"/dev/disk/by-id/scsi-0QEMU_QEMU_HARDDISK_drive-scsi1", "/dev/disk/by-path/pci-0000:01:02.0-scsi-0:0:0:1",
		},
		"sata": {
			disk("sata0"), "", "", "sata", "/pci0000:00/0000:00:07.0/ata1/host0/target0:0:0/0:0:0:0",
			"/dev/disk/by-id/ata-QEMU_HARDDISK_QM00005", "/dev/disk/by-path/pci-0000:00:07.0-ata-1",
		},
		"sata with a serial": {
			disk("sata0", serial), "q35", "", "sata",
			"/pci0000:00/0000:00:1e.0/0000:05:01.0/0000:06:07.0/ata1/host0/target0:0:0/0:0:0:0",
			"/dev/disk/by-id/ata-QEMU_HARDDISK_mine", "/dev/disk/by-path/pci-0000:06:07.0-ata-1.0",
		},
		"virtio": {
			disk("virtio0", serial), "", "mine", "virtio", "/pci0000:00/0000:00:0a.0/virtio0",
			"/dev/disk/by-id/virtio-mine", "/dev/disk/by-path/virtio-pci-0000:00:0a.0",
		},
	} {
		t.Run(name, func(t *testing.T) {
			devices := disks.List(&guest.Machine{Type: c.board, Disks: []*guest.Disk{c.disk}})
			require.Len(t, devices, 2)
			assert.Equal(t, "/dev/loop0", devices[0].Path())
			spec := devices[1].Spec
			assert.Equal(t, c.serial, spec.GetSerial())
			assert.Equal(t, c.transport, spec.GetTransport())
			assert.Equal(t, c.busPath, spec.GetBusPath())
			assert.Equal(t, "13 GB", spec.GetPrettySize())
			for _, name := range []string{spec.GetDevPath(), c.link, c.place} {
				found := disks.Find(devices, name)
				require.NotNil(t, found, name)
				assert.Same(t, c.disk, found.Disk)
			}
		})
	}
}

// TestNamesFollowTheProbing reports that the first disk on a controller of its own need not be the first by name.
func TestNamesFollowTheProbing(t *testing.T) {
	system, data := disk("scsi0", single), disk("scsi1", single)
	devices := disks.List(&guest.Machine{
		Disks: []*guest.Disk{system, data}, CDDrives: []guest.CDDrive{{Device: "ide0"}, {Device: "ide2", Size: 4 << 20}},
	})
	assert.Same(t, data, disks.Find(devices, "/dev/sda").Disk)
	assert.Same(t, system, disks.Find(devices, "/dev/disk/by-id/scsi-0QEMU_QEMU_HARDDISK_drive-scsi0").Disk)
	assert.Nil(t, disks.Find(devices, "/dev/disk/by-id/scsi-0QEMU_QEMU_HARDDISK_mine"))
	assert.True(t, disks.Find(devices, "/dev/sr1").Spec.GetCdrom())
	assert.Contains(t, disks.Find(devices, "/dev/sr0").Spec.GetSymlinks(), "/dev/disk/by-id/ata-QEMU_DVD-ROM_QM00001")
}
