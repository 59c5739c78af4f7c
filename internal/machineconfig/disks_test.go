// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package machineconfig_test

import (
	"cmp"
	"fmt"
	"slices"
	"testing"

	"github.com/siderolabs/talos/pkg/machinery/api/resource/definitions/block"
	"github.com/siderolabs/talos/pkg/machinery/cel/celenv"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/talos-proxmox/talos-proxmox/spec"
)

// hardwareDisk returns a VM's disk as Talos 1.10 to 1.13 publishes it on Proxmox VE 8 or 9. The kernel has no serial
// number of SCSI and SATA disks and Talos asks no helper for their transports ("virtio" and "sata"); udev links a SCSI
// disk by its device id, which is the serial number before QEMU 10 and the drive's name since.
func hardwareDisk(pve int, devPath string, d spec.Disk) *block.DiskSpec {
	kind, unit, serial := *d.Type, *d.UnitNumber, spec.Value(d.Serial)
	disk := &block.DiskSpec{
		DevPath: devPath, Size: 20 << 30, Model: "QEMU HARDDISK", Symlinks: []string{"/dev/disk/by-diskseq/9"},
	}
	switch kind {
	case "scsi":
		id := fmt.Sprintf("drive-scsi%d", unit)
		if pve < 9 && serial != "" {
			id = serial
		}
		disk.Transport = "virtio"
		disk.BusPath = fmt.Sprintf("/pci0000:00/0000:00:05.0/virtio2/host2/target2:0:0/2:0:0:%d", unit)
		disk.Symlinks = append(disk.Symlinks, "/dev/disk/by-id/scsi-0QEMU_QEMU_HARDDISK_"+id,
			fmt.Sprintf("/dev/disk/by-path/pci-0000:00:05.0-scsi-0:0:0:%d", unit))
	case "sata":
		if serial == "" {
			serial = fmt.Sprintf("QM%05d", 5+2*unit)
		}
		disk.Transport = "sata"
		disk.BusPath = fmt.Sprintf("/pci0000:00/0000:00:07.0/ata%d/host%d/target%[2]d:0:0/%[2]d:0:0:0", unit+3, unit+4)
		disk.Symlinks = append(disk.Symlinks, "/dev/disk/by-id/ata-QEMU_HARDDISK_"+serial,
			fmt.Sprintf("/dev/disk/by-path/pci-0000:00:07.0-ata-%d", unit+1))
	default:
		disk.Model, disk.Serial, disk.Transport = "", serial, "virtio"
		disk.BusPath = fmt.Sprintf("/pci0000:00/0000:00:%02x.0/virtio%d", 10+unit, unit)
		disk.Symlinks = append(disk.Symlinks, fmt.Sprintf("/dev/disk/by-path/virtio-pci-0000:00:%02x.0", 10+unit))
		if serial != "" {
			disk.Symlinks = append(disk.Symlinks, "/dev/disk/by-id/virtio-"+serial)
		}
	}

	return disk
}

func TestTalosFindsEveryDiskOnHardware(t *testing.T) {
	t.Parallel()
	for _, bus := range []string{"scsi", "virtio", "sata"} {
		for _, pve := range []int{8, 9} {
			for _, serial := range []*string{nil, spec.Ptr("mine")} {
				name := fmt.Sprintf("%s on %d, serial %s", bus, pve, cmp.Or(spec.Value(serial), "none"))
				change := func(c *spec.Config) {
					c.Nodes[3].OSDisk = &spec.Disk{Type: &bus}
					c.Nodes[3].Disks = map[string]spec.Disk{
						"volume":  {Type: &bus, Serial: serial, UnitNumber: spec.Ptr(1), Mountpoint: spec.Ptr("/var/mnt/volume")},
						"machine": {Type: &bus, UnitNumber: spec.Ptr(2), Mountpoint: spec.Ptr("/var/lib/machine")},
						"other":   {Type: &bus, UnitNumber: spec.Ptr(3)},
					}
				}
				node := nodeOf(t, "work-1", change)
				// the kernel finds the disks in any order
				system, volume := hardwareDisk(pve, "/dev/disk-c", *node.OSDisk), hardwareDisk(pve, "/dev/disk-a", node.Disks["volume"])
				machine, other := hardwareDisk(pve, "/dev/disk-b", node.Disks["machine"]), hardwareDisk(pve, "/dev/disk-d", node.Disks["other"])

				provider := rendered(t, "work-1", change)
				assert.Contains(t, system.GetSymlinks(), provider.Machine().Install().Disk(), name)
				require.Len(t, provider.Machine().Disks(), 1, name)
				assert.Contains(t, machine.GetSymlinks(), provider.Machine().Disks()[0].Device(), name)
				selector, ok := provider.UserVolumeConfigs()[0].Provisioning().DiskSelector().Get()
				require.True(t, ok, name)
				for _, disk := range []*block.DiskSpec{system, volume, machine, other} {
					found, err := selector.EvalBool(celenv.DiskLocator(), map[string]any{"disk": disk, "system_disk": false})
					require.NoError(t, err, name)
					assert.Equal(t, disk == volume, found, "%s: %s", name, disk.GetDevPath())
				}
				for _, disk := range []*block.DiskSpec{volume, machine, other} {
					assert.False(t, slices.Contains(disk.GetSymlinks(), provider.Machine().Install().Disk()), name)
				}
			}
		}
	}
}

// nodeOf returns a node with its defaults.
func nodeOf(t *testing.T, name string, change ...func(*spec.Config)) spec.NamedNode {
	t.Helper()
	cfg := cluster("v1.12.4", "v1.33.0", change...)
	i := slices.IndexFunc(cfg.Nodes, func(n spec.NamedNode) bool { return n.Name == name })
	require.GreaterOrEqual(t, i, 0)

	return cfg.Nodes[i]
}
