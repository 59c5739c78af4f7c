// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package site

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/talos-proxmox/talos-proxmox/lab/site/guest"
)

// state holds what is on disk.
type state struct {
	Version   int        `json:"version"`
	OpenHosts bool       `json:"openHosts,omitempty"`
	Clusters  []*cluster `json:"clusters"`
}

type cluster struct {
	Name        string                       `json:"name"`
	PVE         int                          `json:"pve,omitempty"`
	Hosts       []HostDef                    `json:"hosts"`
	Storages    []StorageDef                 `json:"storages"`
	Volumes     map[string]*volume           `json:"volumes,omitempty"`
	VMs         map[int]*vm                  `json:"vms,omitempty"`
	Pools       map[string]*Pool             `json:"pools,omitempty"`
	HAGroups    map[string]*HAGroup          `json:"haGroups,omitempty"`
	HAResources map[string]*HAResource       `json:"haResources,omitempty"`
	HARules     map[string]map[string]string `json:"haRules,omitempty"`
	PCI         map[string]*Mapping          `json:"pci,omitempty"`
	USB         map[string]*Mapping          `json:"usb,omitempty"`
}

// volume describes a file or a disk on a storage.
type volume struct {
	Storage string       `json:"storage"`
	Host    string       `json:"host,omitempty"` // "" on shared storages
	Name    string       `json:"name"`           // "vm-800-disk-0", "iso/talos.iso"
	Content string       `json:"content"`
	Format  string       `json:"format"`
	Size    int64        `json:"size"` // bytes
	VMID    int          `json:"vmid,omitempty"`
	Image   *guest.Image `json:"image,omitempty"` // what was imported onto a disk
	Created int64        `json:"created"`
}

func (v *volume) id() string { return v.Storage + ":" + v.Name }

type vm struct {
	ID      int               `json:"id"`
	Host    string            `json:"host"`
	Config  map[string]string `json:"config"`
	Pending map[string]string `json:"pending,omitempty"`
	// PendingDelete are keys that go away at the next power cycle.
	PendingDelete []string `json:"pendingDelete,omitempty"`
	// On reports whether it is powered on, now or before the lab was stopped.
	On   bool   `json:"on,omitempty"`
	Lock string `json:"lock,omitempty"`
	// Started is the Unix time of its last power-on.
	Started int64 `json:"started,omitempty"`
}

// wanted returns the configuration with everything that is pending in it.
func (v *vm) wanted() map[string]string {
	c := maps.Clone(v.Config)
	for _, k := range v.PendingDelete {
		delete(c, k)
	}
	maps.Copy(c, v.Pending)

	return c
}

func (v *vm) applyPending() {
	v.Config = v.wanted()
	v.Pending, v.PendingDelete = nil, nil
}

func newCluster(d ClusterDef) *cluster {
	c := &cluster{Name: d.Name, Hosts: slices.Clone(d.Hosts), Storages: slices.Clone(d.Storages), PVE: d.PVE}
	c.fill()

	return c
}

// fill makes the maps that a file may leave out.
func (c *cluster) fill() {
	if c.Volumes == nil {
		c.Volumes = map[string]*volume{}
	}
	if c.VMs == nil {
		c.VMs = map[int]*vm{}
	}
	if c.Pools == nil {
		c.Pools = map[string]*Pool{}
	}
	if c.HAGroups == nil {
		c.HAGroups = map[string]*HAGroup{}
	}
	if c.HAResources == nil {
		c.HAResources = map[string]*HAResource{}
	}
	if c.HARules == nil {
		c.HARules = map[string]map[string]string{}
	}
	if c.PCI == nil {
		c.PCI = map[string]*Mapping{}
	}
	if c.USB == nil {
		c.USB = map[string]*Mapping{}
	}
}

func (c *cluster) host(name string) (HostDef, bool) {
	i := slices.IndexFunc(c.Hosts, func(h HostDef) bool { return strings.EqualFold(h.Name, name) })
	if i < 0 {
		return HostDef{}, false
	}

	return c.Hosts[i], true
}

func (c *cluster) sortedVMs() []*vm {
	return slices.SortedFunc(maps.Values(c.VMs), func(a, b *vm) int { return cmp.Compare(a.ID, b.ID) })
}

const (
	stateFile    = "site.json"
	stateVersion = 1
)

// load reads the state of dir, or makes it from d when there is none.
func load(dir string, d Definition) (*state, error) {
	data, err := os.ReadFile(filepath.Join(dir, stateFile)) // G304: the site's own directory
	if errors.Is(err, fs.ErrNotExist) {
		st := &state{Version: stateVersion, OpenHosts: d.OpenHosts}
		for _, c := range d.Clusters {
			st.Clusters = append(st.Clusters, newCluster(c))
		}
		if len(st.Clusters) == 0 {
			return nil, errors.New("the site's definition has no cluster")
		}

		return st, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading the site: %w", err)
	}

	var st state
	if err := json.Unmarshal(data, &st); err != nil {
		return nil, fmt.Errorf("reading the site in %s: %w; remove the directory to start anew", dir, err)
	}
	if st.Version != stateVersion {
		return nil, fmt.Errorf("the site in %s has version %d and this lab reads %d; remove the directory to start anew",
			dir, st.Version, stateVersion)
	}
	for _, c := range st.Clusters {
		c.fill()
	}

	return &st, nil
}

// save writes the state. The caller holds s.mu.
func (s *Site) save() error {
	data, err := json.MarshalIndent(s.state, "", " ")
	if err != nil {
		return fmt.Errorf("writing the site: %w", err)
	}

	return writeFile(filepath.Join(s.opts.Dir, stateFile), data)
}

// writeFile replaces a file at once: readers see the old one or the new one, also after a crash.
func writeFile(path string, data []byte) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return fmt.Errorf("writing %s: %w", path, err)
	}

	tmp, err := os.CreateTemp(filepath.Dir(path), ".new-*")
	if err != nil {
		return fmt.Errorf("writing %s: %w", path, err)
	}
	defer func() { _ = os.Remove(tmp.Name()) }() // nothing is left to remove once it is renamed

	if _, err := tmp.Write(data); err != nil {
		_ = tmp.Close()

		return fmt.Errorf("writing %s: %w", path, err)
	}
	if err := tmp.Close(); err != nil {
		return fmt.Errorf("writing %s: %w", path, err)
	}
	if err := os.Rename(tmp.Name(), path); err != nil {
		return fmt.Errorf("writing %s: %w", path, err)
	}

	return nil
}
