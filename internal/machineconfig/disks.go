// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package machineconfig

import (
	"fmt"
	"strings"

	"github.com/siderolabs/talos/pkg/machinery/cel"
	"github.com/siderolabs/talos/pkg/machinery/cel/celenv"
	"github.com/siderolabs/talos/pkg/machinery/config/types/block"
	"github.com/siderolabs/talos/pkg/machinery/config/types/v1alpha1"
	blockresource "github.com/siderolabs/talos/pkg/machinery/resources/block"

	"github.com/talos-proxmox/talos-proxmox/spec"
)

// userVolumeRoot is where Talos mounts user volumes, by name; the kubelet sees all of it.
const userVolumeRoot = "/var/mnt/"

// smallestVolume lets a user volume fit on any disk; it grows to the whole of it.
const smallestVolume = "1GiB"

// addDisks mounts the data disks that have a mount point: under /var/mnt as user volumes, elsewhere
// as machine disks, since pods of storage drivers look at the host's own path.
func (r *builder) addDisks() error {
	for _, d := range r.node.DataDisks() {
		path := spec.Value(d.Mountpoint)
		if path == "" {
			continue
		}
		name := userVolumeName(path)
		if name == "" {
			if spec.Value(d.Filesystem) != "xfs" {
				return fmt.Errorf("disk %q: Talos formats disks outside %s as xfs only", d.Name, userVolumeRoot)
			}
			r.machine.MachineDisks = append(r.machine.MachineDisks, &v1alpha1.MachineDisk{
				DeviceName:     deviceName(r.node, d),
				DiskPartitions: []*v1alpha1.DiskPartition{{DiskMountPoint: path}},
			})

			continue
		}
		if err := r.addUserVolume(name, d); err != nil {
			return fmt.Errorf("disk %q: %w", d.Name, err)
		}
	}

	return nil
}

// addUserVolume fills the disk with a volume of that name.
func (r *builder) addUserVolume(name string, d spec.DataDisk) error {
	expression := fmt.Sprintf("disk.dev_path == %q", deviceName(r.node, d))
	if links := guestLinks(r.node, d.Disk); links != nil {
		expression = fmt.Sprintf("%q in disk.symlinks", links[0])
		for _, link := range links[1:] {
			expression += fmt.Sprintf(" || %q in disk.symlinks", link)
		}
	}
	match, err := cel.ParseBooleanExpression(expression, celenv.DiskLocator())
	if err != nil {
		return fmt.Errorf("selecting the disk: %w", err)
	}
	doc := block.NewUserVolumeConfigV1Alpha1()
	doc.MetaName = name
	doc.ProvisioningSpec.DiskSelectorSpec.Match = match
	doc.ProvisioningSpec.ProvisioningGrow = spec.Ptr(true)
	if err := doc.ProvisioningSpec.ProvisioningMinSize.UnmarshalText([]byte(smallestVolume)); err != nil {
		return fmt.Errorf("sizing the volume: %w", err)
	}
	doc.FilesystemSpec.FilesystemType = blockresource.FilesystemTypeXFS
	if spec.Value(d.Filesystem) == "ext4" {
		doc.FilesystemSpec.FilesystemType = blockresource.FilesystemTypeEXT4
	}
	r.add(doc)

	return nil
}

// userVolumeName returns "data" for /var/mnt/data, and empty for any other place.
func userVolumeName(path string) string {
	name, ok := strings.CutPrefix(path, userVolumeRoot)
	if !ok || strings.Contains(name, "/") {
		return ""
	}

	return name
}

// guestLinks returns the links of a VM's disk; a node that is no VM has disks of other makers.
func guestLinks(n spec.NamedNode, d spec.Disk) []string {
	if n.VMID == nil {
		return nil
	}

	return d.GuestLinks()
}

// deviceName returns how the guest knows the disk: by its link where it has one, else by its place among the disks
// of its kind.
func deviceName(n spec.NamedNode, d spec.DataDisk) string {
	if links := guestLinks(n, d.Disk); links != nil {
		return links[0]
	}
	kind := spec.Value(d.Type)
	position := 0
	if os := spec.Value(n.OSDisk); (spec.Value(os.Type) == "virtio") == (kind == "virtio") {
		position++
	}
	for _, other := range n.DataDisks() {
		if other.Name == d.Name {
			break
		}
		if (spec.Value(other.Type) == "virtio") == (kind == "virtio") {
			position++
		}
	}
	prefix := "/dev/sd"
	if kind == "virtio" {
		prefix = "/dev/vd"
	}

	return prefix + string(rune('a'+position))
}
