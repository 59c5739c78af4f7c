// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package site

import "slices"

const (
	gib = int64(1) << 30
	// DefaultCluster is the name of the cluster of [DefaultDefinition].
	DefaultCluster = "homelab"
)

// Definition says what a new site consists of. It counts when the site's directory is made; later the
// directory knows better.
type Definition struct {
	// OpenHosts lets a host come into being when its name is first used: with storages "local" and
	// "local-lvm", every bridge, 64 cores and 512 GiB. Any stack file runs on such a site.
	OpenHosts bool         `json:"openHosts,omitempty"`
	Clusters  []ClusterDef `json:"clusters"`
}

// ClusterDef describes one Proxmox VE cluster. Its first one is the default: endpoints that name no host lead to it.
type ClusterDef struct {
	Name     string       `json:"name"`
	Hosts    []HostDef    `json:"hosts"`
	Storages []StorageDef `json:"storages"`
	// PVE is the major version of Proxmox VE, 8 unless it is 9, which has no HA groups any more.
	PVE int `json:"pve,omitempty"`
}

// HostDef describes a Proxmox VE host.
type HostDef struct {
	Name      string `json:"name"`
	Cores     int    `json:"cores"`
	MemoryMiB int    `json:"memoryMiB"`
	// Bridges are the host's bridges; empty means that every name is one.
	Bridges []string `json:"bridges,omitempty"`
	// PCI are the addresses of devices that can be passed through, "0000:01:00.0".
	PCI []string `json:"pci,omitempty"`
	// Address is the host's own address, "" for none that matters.
	Address string `json:"address,omitempty"`
}

// Storage types.
const (
	StorageDir     = "dir"
	StorageLVMThin = "lvmthin"
	StorageNFS     = "nfs"
)

// StorageDef describes a storage, configured cluster-wide as in storage.cfg.
type StorageDef struct {
	ID   string `json:"id"`
	Type string `json:"type"` // "dir", "lvmthin", "nfs"
	// Content are the content types it may hold: images, iso, vztmpl, snippets, rootdir, backup.
	Content []string `json:"content"`
	// Shared storages hold the same volumes on every host.
	Shared bool `json:"shared,omitempty"`
	// Nodes are the hosts that have it; empty means all.
	Nodes []string `json:"nodes,omitempty"`
	// SizeBytes is its capacity, per host unless it is shared.
	SizeBytes int64 `json:"sizeBytes"`
}

// fileBased reports whether the storage keeps files in directories.
func (d StorageDef) fileBased() bool { return d.Type != StorageLVMThin }

func (d StorageDef) holds(content string) bool { return slices.Contains(d.Content, content) }

func (d StorageDef) on(host string) bool { return len(d.Nodes) == 0 || slices.Contains(d.Nodes, host) }

// path returns where a file-based storage is mounted.
func (d StorageDef) path() string {
	switch {
	case !d.fileBased():
		return ""
	case d.ID == "local":
		return "/var/lib/vz"
	default:
		return "/mnt/pve/" + d.ID
	}
}

// DefaultDefinition returns one cluster with the hosts of the project's stacks; any other host comes into
// being when it is named.
func DefaultDefinition() Definition {
	return Definition{
		OpenHosts: true,
		Clusters: []ClusterDef{{
			Name: DefaultCluster,
			Hosts: []HostDef{
				{Name: "ryzen-proxmox", Cores: 32, MemoryMiB: 128 << 10, Bridges: []string{"vmbr0", "vmbr1", "vmbr200"}},
				{Name: "alpha", Cores: 64, MemoryMiB: 256 << 10, Bridges: []string{"vmbr0", "vmbr1", "dmz"}},
				{Name: "charlie", Cores: 64, MemoryMiB: 256 << 10, Bridges: []string{"vmbr0", "vmbr1", "dmz"}},
				{Name: "foxtrot", Cores: 64, MemoryMiB: 256 << 10, Bridges: []string{"vmbr0", "vmbr1", "dmz"}},
				{
					Name: "host3", Cores: 32, MemoryMiB: 128 << 10, Bridges: []string{"vmbr0", "vmbr1"},
					PCI: []string{"0000:00:02.0", "0000:01:00.0", "0000:01:00.1"},
				},
				{Name: "nuc", Cores: 16, MemoryMiB: 64 << 10, Bridges: []string{"vmbr0", "vmbr1"}, PCI: []string{"0000:00:02.0"}},
			},
			Storages: DefaultStorages(),
		}},
	}
}

// DefaultStorages returns the storages of [DefaultDefinition]: "local" and "local-lvm" on every host, as an
// installer leaves them ("local" holds snippets too), and the shared "nas" of three hosts.
func DefaultStorages() []StorageDef {
	return []StorageDef{
		{ID: "local", Type: StorageDir, Content: []string{"iso", "vztmpl", "backup", "snippets"}, SizeBytes: 100 * gib},
		{ID: "local-lvm", Type: StorageLVMThin, Content: []string{"images", "rootdir"}, SizeBytes: 8192 * gib},
		{
			ID: "nas", Type: StorageNFS, Content: []string{"images", "iso", "vztmpl", "backup", "snippets"},
			Shared: true, Nodes: []string{"alpha", "charlie", "foxtrot"}, SizeBytes: 16384 * gib,
		},
	}
}

func openHost(name string) HostDef {
	return HostDef{Name: name, Cores: 64, MemoryMiB: 512 << 10}
}
