// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package site

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"strconv"
	"strings"

	"github.com/talos-proxmox/talos-proxmox/lab/site/pve"
)

// MoveDisk moves a disk to another storage of the host and returns the task's UPID. The old volume is
// removed when drop is set, else it stays as an unused disk.
func (c *Cluster) MoveDisk(host string, id int, disk, storage, format string, drop bool, user string) (string, error) {
	c.s.mu.Lock()
	v, err := c.find(host, id)
	var src *volume
	if err == nil {
		src, err = c.movable(v, disk, storage, format)
	}
	c.s.mu.Unlock()
	if err != nil {
		return "", err
	}

	return c.s.spawn(v.Host, "qmmove", strconv.Itoa(id), user, func(context.Context, sayf) error {
		defer c.lockVM(id)()
		c.s.mu.Lock()
		defer c.s.mu.Unlock()

		d, err := c.imageStorage(v.Host, storage)
		if err != nil {
			return err
		}
		if err := c.relocate(v, src, d, v.Host, format, drop); err != nil {
			return err
		}
		p := pve.ParseProperties("file", v.Config[disk])
		p.Set("file", src.id())
		v.Config[disk] = p.String()

		return c.s.save()
	}), nil
}

func (c *Cluster) movable(v *vm, disk, storage, format string) (*volume, error) {
	if err := v.unlocked(); err != nil {
		return nil, err
	}
	stored, ok := v.Config[disk]
	if !ok {
		return nil, pve.Errorf("disk '%s' does not exist", disk)
	}
	src, err := c.volume(v.Host, pve.ParseProperties("file", stored).Get("file"))
	if err != nil {
		return nil, err
	}
	if src.Storage == storage && (format == "" || format == src.Format) {
		return nil, pve.Errorf("you can't move to the same storage with same format")
	}
	_, err = c.imageStorage(v.Host, storage)

	return src, err
}

// relocate moves a volume in place, so that disks of a running guest follow; a copy stays behind as an
// unused disk unless drop is set.
func (c *Cluster) relocate(v *vm, vol *volume, d StorageDef, host, format string, drop bool) error {
	data, err := os.ReadFile(c.file(vol))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("moving volume %s: %w", vol.id(), err)
	}

	old := *vol
	oldFile := c.file(vol)
	maps.DeleteFunc(c.c.Volumes, func(_ string, have *volume) bool { return have == vol })
	if format == "" || !d.fileBased() {
		format = "raw"
	}
	vol.Format, vol.Storage, vol.Host = format, d.ID, host
	if d.Shared {
		vol.Host = ""
	}
	if !strings.Contains(vol.Name, "-cloudinit") || old.Storage != d.ID {
		at := *v
		at.Host = host
		vol.Name = c.diskName(d, &at, format)
	}
	c.c.Volumes[volumeKey(d, host, vol.Name)] = vol
	if data != nil {
		if err := writeFile(c.file(vol), data); err != nil {
			return err
		}
	}

	if drop {
		if err := os.RemoveAll(oldFile); err != nil {
			return fmt.Errorf("removing volume %s: %w", old.id(), err)
		}

		return nil
	}
	left := old
	c.c.Volumes[left.Storage+"|"+left.Host+"|"+left.Name] = &left
	for i := 0; ; i++ {
		if k := fmt.Sprintf("unused%d", i); v.Config[k] == "" {
			v.Config[k] = left.id()

			return nil
		}
	}
}
