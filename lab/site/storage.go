// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package site

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/talos-proxmox/talos-proxmox/lab/site/pve"
)

// StorageStatus describes a storage as one host sees it.
type StorageStatus struct {
	StorageDef

	Used int64 // bytes
	Path string
}

// VolumeInfo describes a file or disk on a storage.
type VolumeInfo struct {
	VolID   string // "local:iso/talos.iso"
	Content string
	Format  string
	Size    int64 // bytes
	VMID    int
	Path    string
	Created int64 // Unix time
}

// Storages returns the storages that a host has, by id.
func (c *Cluster) Storages(host string) ([]StorageStatus, error) {
	c.s.mu.Lock()
	defer c.s.mu.Unlock()

	h, err := c.host(host)
	if err != nil {
		return nil, err
	}

	var all []StorageStatus
	for _, d := range c.c.Storages {
		if d.on(h.Name) {
			all = append(all, StorageStatus{StorageDef: d, Used: c.c.used(d, h.Name), Path: d.path()})
		}
	}

	return all, nil
}

// StorageConfigs returns the cluster's storages as configured.
func (c *Cluster) StorageConfigs() []StorageStatus {
	c.s.mu.Lock()
	defer c.s.mu.Unlock()

	var all []StorageStatus
	for _, d := range c.c.Storages {
		all = append(all, StorageStatus{StorageDef: d, Path: d.path()})
	}

	return all
}

// Content lists what a storage holds on a host; content "" means everything.
func (c *Cluster) Content(host, storage, content string) ([]VolumeInfo, error) {
	c.s.mu.Lock()
	defer c.s.mu.Unlock()

	h, d, err := c.storage(host, storage)
	if err != nil {
		return nil, err
	}

	infos := []VolumeInfo{}
	for _, v := range c.c.Volumes {
		if v.Storage == d.ID && (d.Shared || v.Host == h.Name) && (content == "" || v.Content == content) {
			infos = append(infos, info(d, v))
		}
	}
	slices.SortFunc(infos, func(a, b VolumeInfo) int { return strings.Compare(a.VolID, b.VolID) })

	return infos, nil
}

// Volume returns one volume of a storage as a host sees it.
func (c *Cluster) Volume(host, storage, volID string) (VolumeInfo, error) {
	c.s.mu.Lock()
	defer c.s.mu.Unlock()

	h, d, err := c.storage(host, storage)
	if err != nil {
		return VolumeInfo{}, err
	}
	v, err := c.volume(h.Name, qualify(storage, volID))
	if err != nil {
		return VolumeInfo{}, err
	}

	return info(d, v), nil
}

// DeleteVolume removes a volume and returns the task's UPID. Removing a file that is not there is no error.
func (c *Cluster) DeleteVolume(host, storage, volID, user string) (string, error) {
	c.s.mu.Lock()
	h, _, err := c.storage(host, storage)
	if err == nil {
		_, _, err = splitVolID(qualify(storage, volID))
	}
	c.s.mu.Unlock()
	if err != nil {
		return "", err
	}

	full := qualify(storage, volID)

	return c.s.spawn(h.Name, "imgdel", deletion(full), user, func(_ context.Context, say sayf) error {
		defer c.s.tellGone()
		c.s.mu.Lock()
		defer c.s.mu.Unlock()

		v, err := c.volume(h.Name, full)
		if err != nil {
			say("disk image '%s' does not exist", full)

			return nil
		}
		if err := c.free(v); err != nil {
			return err
		}
		say("Removed volume '%s'", full)

		return c.s.save()
	}), nil
}

// deletion returns the id of the task that removes a volume: "100@local-lvm" for a disk, else the storage.
func deletion(volID string) string {
	storage, name, _ := strings.Cut(volID, ":")
	if m := diskOf.FindStringSubmatch(name); m != nil {
		return m[1] + "@" + storage
	}

	return storage
}

var diskOf = regexp.MustCompile(`^(?:\d+/)?(?:vm|base)-(\d+)-`)

func uses(v *vm, volID string) bool {
	for k, s := range v.Config {
		if pve.DriveKey.MatchString(k) {
			p := pve.ParseProperties("file", s)
			if p.Get("file") == volID {
				return true
			}
		}
	}

	return false
}

// storage resolves a host and one of its storages. The caller holds the lock.
func (c *Cluster) storage(host, id string) (HostDef, StorageDef, error) {
	h, err := c.host(host)
	if err != nil {
		return HostDef{}, StorageDef{}, err
	}

	i := slices.IndexFunc(c.c.Storages, func(d StorageDef) bool { return d.ID == id })
	if i < 0 {
		return h, StorageDef{}, pve.Errorf("storage '%s' does not exist", id)
	}
	if d := c.c.Storages[i]; d.on(h.Name) {
		return h, d, nil
	}

	return h, StorageDef{}, pve.Errorf("storage '%s' is not available on node '%s'", id, h.Name)
}

// volume finds a volume by its full id as a host sees it. The caller holds the lock.
func (c *Cluster) volume(host, volID string) (*volume, error) {
	storage, name, err := splitVolID(volID)
	if err != nil {
		return nil, err
	}
	h, d, err := c.storage(host, storage)
	if err != nil {
		return nil, err
	}

	if v, ok := c.c.Volumes[volumeKey(d, h.Name, name)]; ok {
		return v, nil
	}

	switch {
	case d.fileBased():
		return nil, pve.Errorf("volume '%s' does not exist", volID)
	case !lvmName.MatchString(name):
		return nil, pve.Errorf("lvm name '%s' contains illegal characters", name)
	}

	return nil, pve.Errorf("no such logical volume pve/%s", name)
}

var lvmName = regexp.MustCompile(`(?i)^[a-z0-9][a-z0-9\-_.]*[a-z0-9]$`)

func volumeKey(d StorageDef, host, name string) string {
	if d.Shared {
		host = ""
	}

	return d.ID + "|" + host + "|" + name
}

// add records a volume. The caller holds the lock.
func (c *Cluster) add(d StorageDef, host string, v volume) *volume {
	v.Storage, v.Host, v.Created = d.ID, host, time.Now().Unix()
	if d.Shared {
		v.Host = ""
	}
	c.c.Volumes[volumeKey(d, host, v.Name)] = &v

	return &v
}

// free removes a volume and its bytes. The caller holds the lock.
func (c *Cluster) free(v *volume) error {
	if v.Content == "images" {
		if data, err := c.read(v); err == nil {
			c.s.gone = append(c.s.gone, data)
		}
	}
	if err := os.RemoveAll(c.file(v)); err != nil {
		return fmt.Errorf("removing volume %s: %w", v.id(), err)
	}
	maps.DeleteFunc(c.c.Volumes, func(_ string, have *volume) bool { return have == v })

	return nil
}

// file returns where the bytes of a volume are kept.
func (c *Cluster) file(v *volume) string {
	host := v.Host
	if host == "" {
		host = "shared"
	}
	name := strings.NewReplacer("/", "__", "..", "__").Replace(v.Name)

	return filepath.Join(c.s.opts.Dir, "volumes", c.c.Name, host, v.Storage, name)
}

// used sums what a storage holds: files count their bytes and thin disks nothing.
func (c *cluster) used(d StorageDef, host string) int64 {
	var n int64
	for _, v := range c.Volumes {
		if v.Storage == d.ID && (d.Shared || v.Host == host) && v.Content != "images" {
			n += v.Size
		}
	}

	return n
}

func info(d StorageDef, v *volume) VolumeInfo {
	path := "/dev/pve/" + v.Name
	if d.fileBased() {
		dir := map[string]string{"iso": "template", "vztmpl": "template/cache", "images": "images", "snippets": ""}[v.Content]
		name := strings.TrimPrefix(v.Name, "vztmpl/")
		path = strings.TrimSuffix(d.path()+"/"+dir, "/") + "/" + name
	}

	return VolumeInfo{VolID: v.id(), Content: v.Content, Format: v.Format, Size: v.Size, VMID: v.VMID, Path: path, Created: v.Created}
}

// qualify puts the storage before a bare volume name.
func qualify(storage, volID string) string {
	if strings.HasPrefix(volID, storage+":") {
		return volID
	}

	return storage + ":" + volID
}

func splitVolID(volID string) (storage, name string, err error) {
	storage, name, ok := strings.Cut(volID, ":")
	if !ok || storage == "" || name == "" {
		return "", "", pve.Errorf("unable to parse volume ID '%s'", volID)
	}

	return storage, name, nil
}
