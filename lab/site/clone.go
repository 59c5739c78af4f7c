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

	"github.com/google/uuid"

	"github.com/talos-proxmox/talos-proxmox/lab/site/pve"
)

// Clone copies a VM and returns the task's UPID.
func (c *Cluster) Clone(host string, id, newID int, params map[string]string, user string) (string, error) {
	if newID < 100 {
		return "", pve.Invalid("newid", "invalid format - value does not look like a valid VM ID")
	}
	c.s.mu.Lock()
	src, err := c.find(host, id)
	if err == nil {
		err = src.unlocked()
	}
	c.s.mu.Unlock()
	if err != nil {
		return "", err
	}
	target := params["target"]
	if target == "" {
		target = src.Host
	}

	if err := c.cloneable(src, newID, target); err != nil {
		return "", err
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
		case pve.DriveKey.MatchString(k):
			var err error
			if value, err = c.copyDrive(src, v, value, params["storage"], params["format"]); err != nil {
				return err
			}
		case pve.NetKey.MatchString(k):
			n := pve.ParseNet(value)
			n.MAC = newMAC()
			value = n.String()
		case k == "smbios1":
			p := pve.ParseProperties("", value)
			p.Set("uuid", uuid.NewString())
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

func (c *Cluster) copyDrive(src, v *vm, value, storage, format string) (string, error) {
	p := pve.ParseProperties("file", value)
	vol, err := c.volume(src.Host, p.Get("file"))
	if err != nil || vol.VMID == 0 {
		return value, nil //nolint:nilerr // no medium, or a CD
	}
	if storage == "" {
		storage = vol.Storage
	}
	d, err := c.imageStorage(v.Host, storage)
	if err != nil {
		return "", err
	}

	dup := *vol
	if d.fileBased() && format != "" {
		dup.Format = format
	}
	dup.VMID, dup.Name = v.ID, c.diskName(d, v, dup.Format)
	if strings.Contains(vol.Name, "-cloudinit") {
		dup.Name = strings.ReplaceAll(vol.Name, strconv.Itoa(src.ID), strconv.Itoa(v.ID))
	}
	made := c.add(d, v.Host, dup)
	if data, err := os.ReadFile(c.file(vol)); err == nil {
		if err := writeFile(c.file(made), data); err != nil {
			return "", err
		}
	}
	p.Set("file", made.id())

	return p.String(), nil
}

// cloneable refuses an id that is taken, and a copy on another host of what lies on this one alone.
func (c *Cluster) cloneable(src *vm, id int, target string) error {
	c.s.mu.Lock()
	defer c.s.mu.Unlock()

	if _, taken := c.c.VMs[id]; taken {
		return pve.Errorf("unable to create VM %d: config file already exists", id)
	}
	for key, value := range src.Config {
		if !pve.DriveKey.MatchString(key) || strings.EqualFold(target, src.Host) {
			continue
		}
		if vol, err := c.volume(src.Host, pve.ParseProperties("file", value).Get("file")); err == nil && vol.Host != "" {
			return pve.Errorf("can't clone VM to node '%s' (VM uses local storage)", target)
		}
	}

	return nil
}

// Template makes a template of a VM and returns the task's UPID.
func (c *Cluster) Template(host string, id int, user string) (string, error) {
	c.s.mu.Lock()
	v, err := c.find(host, id)
	if err == nil {
		err = v.unlocked()
	}
	if err == nil && c.s.running[vmKey{c.c.Name, id}] != nil {
		err = pve.Errorf("you can't convert a VM to template if VM is running")
	}
	c.s.mu.Unlock()
	if err != nil {
		return "", err
	}

	return c.s.spawn(v.Host, "qmtemplate", strconv.Itoa(id), user, func(context.Context, sayf) error {
		defer c.lockVM(id)()
		c.s.mu.Lock()
		defer c.s.mu.Unlock()

		for key, value := range v.Config {
			vol, err := c.volume(v.Host, pve.ParseProperties("file", value).Get("file"))
			if !pve.DriveKey.MatchString(key) || err != nil || vol.VMID != id || strings.Contains(vol.Name, "-cloudinit") {
				continue
			}
			if err := c.rename(vol, strings.Replace(vol.Name, "vm-", "base-", 1)); err != nil {
				return err
			}
			p := pve.ParseProperties("file", value)
			p.Set("file", vol.id())
			v.Config[key] = p.String()
		}
		v.Config["template"] = "1"

		return c.s.save()
	}), nil
}

// rename gives a volume another name, with what is on it.
func (c *Cluster) rename(vol *volume, name string) error {
	old := c.file(vol)
	maps.DeleteFunc(c.c.Volumes, func(_ string, have *volume) bool { return have == vol })
	vol.Name = name
	c.c.Volumes[vol.Storage+"|"+vol.Host+"|"+name] = vol
	if err := os.Rename(old, c.file(vol)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("renaming volume %s: %w", vol.id(), err)
	}

	return nil
}
