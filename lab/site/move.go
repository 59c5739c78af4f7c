// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package site

import (
	"context"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"

	"errors"

	"github.com/google/uuid"
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

		_, d, err := c.imageStorage(v.Host, storage)
		if err != nil {
			return err
		}
		if err := c.relocate(v, src, d, v.Host, format, drop); err != nil {
			return err
		}
		p := parseProps("file", v.Config[disk])
		p.set("file", src.id())
		v.Config[disk] = p.String()

		return c.s.save()
	}), nil
}

func (c *Cluster) movable(v *vm, disk, storage, format string) (*volume, error) {
	stored, ok := v.Config[disk]
	if !ok {
		return nil, dief("disk '%s' does not exist", disk)
	}
	src, err := c.volume(v.Host, parseProps("file", stored).get("file"))
	if err != nil {
		return nil, err
	}
	if src.Storage == storage && (format == "" || format == src.Format) {
		return nil, dief("you can't move to the same storage with same format")
	}
	_, _, err = c.imageStorage(v.Host, storage)

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

// Migrate moves a VM to another host and returns the task's UPID. A running one goes on running when
// online is set; disks on storages that are not shared move only with local.
func (c *Cluster) Migrate(host string, id int, target, targetStorage string, online, local bool, user string) (string, error) {
	c.s.mu.Lock()
	v, err := c.find(host, id)
	var to HostDef
	if err == nil {
		to, err = c.host(target)
	}
	running := c.s.running[vmKey{c.c.Name, id}] != nil
	c.s.mu.Unlock()
	switch {
	case err != nil:
		return "", err
	case to.Name == v.Host:
		return "", invalid("target", "target is local node.")
	case running && !online:
		return "", invalid("online", "can't migrate running VM without --online")
	}

	return c.s.spawn(v.Host, "qmigrate", strconv.Itoa(id), user, func(ctx context.Context, say sayf) error {
		defer c.lockVM(id)()
		if err := c.s.opts.Clock.Sleep(ctx, startTime); err != nil {
			return err
		}
		c.s.mu.Lock()
		defer c.s.mu.Unlock()

		say("starting migration of VM %d to node '%s'", id, to.Name)
		if err := c.migrate(v, to, targetStorage, local); err != nil {
			return fmt.Errorf("Problem found while scanning volumes - %w", err) //nolint:revive,staticcheck // Proxmox VE's own words
		}

		return c.s.save()
	}), nil
}

func (c *Cluster) migrate(v *vm, to HostDef, targetStorage string, local bool) error {
	for k := range v.Config {
		if strings.HasPrefix(k, "hostpci") && c.s.running[vmKey{c.c.Name, v.ID}] != nil {
			return fmt.Errorf("can't migrate running VM which uses local devices: %s", k)
		}
	}

	type step struct {
		key string
		vol *volume
		d   StorageDef
	}
	var steps []step
	for _, k := range slices.Sorted(maps.Keys(v.Config)) {
		if !driveKey.MatchString(k) {
			continue
		}
		p := parseProps("file", v.Config[k])
		vol, err := c.volume(v.Host, p.get("file"))
		if err != nil || vol.Host == "" {
			continue // no medium, or on a shared storage
		}
		if vol.VMID == 0 {
			return fmt.Errorf("can't migrate local disk '%s': local cdrom image", vol.id())
		}
		if vol.VMID != v.ID {
			return fmt.Errorf("can't migrate local disk '%s': owned by other VM (owner = VM %d)", vol.id(), vol.VMID)
		}
		if !local {
			return fmt.Errorf("can't migrate VM - check log: local disk '%s' and with-local-disks is not set", vol.id())
		}
		dest := vol.Storage
		if targetStorage != "" {
			dest = targetStorage
		}
		_, d, err := c.imageStorage(to.Name, dest)
		if err != nil {
			return err
		}
		steps = append(steps, step{k, vol, d})
	}

	for _, s := range steps {
		if err := c.relocate(v, s.vol, s.d, to.Name, s.vol.Format, true); err != nil {
			return err
		}
		p := parseProps("file", v.Config[s.key])
		p.set("file", s.vol.id())
		v.Config[s.key] = p.String()
	}
	v.Host = to.Name

	return nil
}

// Clone copies a VM and returns the task's UPID.
func (c *Cluster) Clone(host string, id, newID int, params map[string]string, user string) (string, error) {
	if newID < 100 {
		return "", invalid("newid", "invalid format - value does not look like a valid VM ID")
	}
	c.s.mu.Lock()
	src, err := c.find(host, id)
	c.s.mu.Unlock()
	if err != nil {
		return "", err
	}
	target := params["target"]
	if target == "" {
		target = src.Host
	}

	v := &vm{ID: newID, Config: map[string]string{}, Lock: "clone"}
	if err := c.reserve(v, target, params["pool"], nil); err != nil {
		return "", err
	}

	return c.s.spawn(src.Host, "qmclone", strconv.Itoa(id), user, func(ctx context.Context, _ sayf) error {
		defer c.lockVM(newID)()
		err := c.s.opts.Clock.Sleep(ctx, createTime)
		c.s.mu.Lock()
		defer c.s.mu.Unlock()
		if err == nil {
			err = c.copyVM(src, v, params)
		}
		if err != nil {
			for _, vol := range c.volumesOf(newID) {
				err = errors.Join(err, c.free(vol))
			}
			c.drop(v)

			return errors.Join(fmt.Errorf("clone failed: %w", err), c.s.save())
		}
		v.Lock = ""

		return c.s.save()
	}), nil
}

func (c *Cluster) copyVM(src, v *vm, params map[string]string) error {
	for k, value := range src.Config {
		switch {
		case k == "template" || strings.HasPrefix(k, "unused"):
			continue
		case driveKey.MatchString(k):
			var err error
			if value, err = c.copyDrive(src, v, value, params["storage"]); err != nil {
				return err
			}
		case netKey.MatchString(k):
			n := parseNet(value)
			n.mac = newMAC()
			value = n.String()
		case k == "smbios1":
			p := parseProps("", value)
			p.set("uuid", uuid.NewString())
			value = p.String()
		case k == "vmgenid":
			value = uuid.NewString()
		}
		v.Config[k] = value
	}
	v.Config["name"] = fmt.Sprintf("Copy-of-VM-%s", src.Config["name"])
	if name := params["name"]; name != "" {
		v.Config["name"] = name
	}
	if d := params["description"]; d != "" {
		v.Config["description"] = d
	}

	return nil
}

func (c *Cluster) copyDrive(src, v *vm, value, storage string) (string, error) {
	p := parseProps("file", value)
	vol, err := c.volume(src.Host, p.get("file"))
	if err != nil || vol.VMID == 0 {
		return value, nil //nolint:nilerr // no medium, or a CD
	}
	if storage == "" {
		storage = vol.Storage
	}
	_, d, err := c.imageStorage(v.Host, storage)
	if err != nil {
		return "", err
	}

	dup := *vol
	dup.VMID, dup.Name = v.ID, c.diskName(d, v, vol.Format)
	if strings.Contains(vol.Name, "-cloudinit") {
		dup.Name = strings.ReplaceAll(vol.Name, strconv.Itoa(src.ID), strconv.Itoa(v.ID))
	}
	made := c.add(d, v.Host, dup)
	if data, err := os.ReadFile(c.file(vol)); err == nil {
		if err := writeFile(c.file(made), data); err != nil {
			return "", err
		}
	}
	p.set("file", made.id())

	return p.String(), nil
}
