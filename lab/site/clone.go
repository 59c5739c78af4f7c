// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package site

import (
	"context"
	"errors"
	"fmt"
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
		case pve.DriveKey.MatchString(k):
			var err error
			if value, err = c.copyDrive(src, v, value, params["storage"]); err != nil {
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

func (c *Cluster) copyDrive(src, v *vm, value, storage string) (string, error) {
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
	p.Set("file", made.id())

	return p.String(), nil
}
