// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package node

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/cosi-project/runtime/pkg/resource"
	"github.com/siderolabs/talos/pkg/machinery/cel/celenv"
	talosconfig "github.com/siderolabs/talos/pkg/machinery/config/config"
	"github.com/siderolabs/talos/pkg/machinery/resources/block"

	"github.com/talos-proxmox/talos-proxmox/lab/site/guest"
	"github.com/talos-proxmox/talos-proxmox/lab/talos/disks"
	"github.com/talos-proxmox/talos-proxmox/lab/talos/etcd"
)

// osData marks a disk that holds file systems and no Talos.
const osData = "data"

// dataDisk holds what Talos keeps on a disk for users: file systems by the label of their partition.
type dataDisk struct {
	OS      string                `json:"os"`
	Volumes map[string]filesystem `json:"volumes"`
}

// filesystem describes a file system on a data disk. Its UUID is made when it is formatted: as long as it stays, so do
// the data.
type filesystem struct {
	UUID string `json:"uuid"`
	Type string `json:"type"`
}

// mounted describes a file system that the node uses.
type mounted struct {
	filesystem

	label, path string
	size        int64
	disk        *guest.Disk
}

// wantedVolume describes a file system that the configuration asks for.
type wantedVolume struct {
	label, kind string
	on          func(d disks.Device) bool
}

// wantedVolumes returns user volumes, and the disks of the machine section.
func (n *Node) wantedVolumes() ([]wantedVolume, error) {
	cfg := n.Config()
	if cfg == nil {
		return nil, nil
	}
	var (
		all  []wantedVolume
		errs []error
	)
	for _, v := range cfg.UserVolumeConfigs() {
		on, err := selected(v)
		errs = append(errs, err)
		all = append(all, wantedVolume{label: "u-" + v.Name(), kind: v.Filesystem().Type().String(), on: on})
	}
	if cfg.Machine() == nil {
		return all, errors.Join(errs...)
	}
	for _, d := range cfg.Machine().Disks() {
		for _, p := range d.Partitions() {
			all = append(all, wantedVolume{label: p.MountPoint(), kind: "xfs", on: func(have disks.Device) bool {
				return have.Path() == d.Device() || slices.Contains(have.Spec.GetSymlinks(), d.Device())
			}})
		}
	}

	return all, errors.Join(errs...)
}

// selected returns the disk selector of a user volume.
func selected(v talosconfig.UserVolumeConfig) (func(disks.Device) bool, error) {
	match, ok := v.Provisioning().DiskSelector().Get()
	if !ok {
		return nil, fmt.Errorf("user volume %s selects no disk", v.Name())
	}

	return func(d disks.Device) bool {
		found, err := match.EvalBool(celenv.DiskLocator(), map[string]any{"disk": d.Spec, "system_disk": false})

		return err == nil && found
	}, nil
}

// mountVolumes finds the file systems that the configuration asks for, and makes those that are nowhere
// yet: what is on a disk already is mounted as it is.
func (n *Node) mountVolumes() {
	wanted, err := n.wantedVolumes()
	if err != nil {
		n.Console("user volumes", "error", err)

		return
	}
	devices := disks.List(n.VM)
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, v := range wanted {
		if v.on == nil || slices.ContainsFunc(n.volumesHeld, func(m mounted) bool { return m.label == v.label }) {
			continue
		}
		for _, d := range devices {
			if d.Disk == nil || n.Disk != nil && n.Disk.Disk == d.Disk || !v.on(d) {
				continue
			}
			if m, err := n.mount(v, d.Path(), d.Disk); err == nil {
				n.volumesHeld = append(n.volumesHeld, m)
			}

			break
		}
	}
}

// mount uses the file system on the disk, formatted first where there is none of that label.
func (n *Node) mount(v wantedVolume, path string, d *guest.Disk) (mounted, error) {
	content := dataDisk{}
	if data := d.Load(); len(data) > 0 && json.Unmarshal(data, &content) != nil {
		return mounted{}, fmt.Errorf("disk %s holds something else", path)
	}
	fs, there := content.Volumes[v.label]
	attrs := map[string]string{"volume": v.label, "disk": d.Device}
	if !there {
		fs = filesystem{UUID: etcd.NewID(), Type: v.kind}
		if content.Volumes == nil {
			content.Volumes = map[string]filesystem{}
		}
		content.OS, content.Volumes[v.label] = osData, fs
		attrs["uuid"] = fs.UUID
		end := n.VM.Trace.Begin("volume.format", fmt.Sprintf("vm/%d", n.VM.VMID), attrs)
		data, err := json.Marshal(content)
		if err == nil {
			err = d.Store(data)
		}
		end(err)
		if err != nil {
			return mounted{}, fmt.Errorf("formatting disk %s: %w", path, err)
		}
	}
	attrs["uuid"] = fs.UUID
	n.VM.Trace.Begin("volume.mount", fmt.Sprintf("vm/%d", n.VM.VMID), attrs)(nil)

	return mounted{filesystem: fs, label: v.label, path: path, size: d.Size, disk: d}, nil
}

// userVolumes returns the mounted file systems as Talos shows them.
func (n *Node) userVolumes() []resource.Resource {
	n.mu.Lock()
	defer n.mu.Unlock()
	var out []resource.Resource
	for _, m := range n.volumesHeld {
		if strings.HasPrefix(m.label, "/") {
			continue // disks of the machine section are no volumes
		}
		v := block.NewVolumeStatus(block.NamespaceName, m.label)
		s := v.TypedSpec()
		s.Phase, s.Type, s.UUID = block.VolumePhaseReady, block.VolumeTypePartition, m.UUID
		s.Location, s.ParentLocation, s.PartitionIndex = m.path+"1", m.path, 1
		if kind, err := block.FilesystemTypeString(m.Type); err == nil {
			s.Filesystem = kind
		}
		s.SetSize(uint64(max(m.size, 0)))
		out = append(out, v)
	}

	return out
}
