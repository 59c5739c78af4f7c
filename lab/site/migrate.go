// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package site

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/talos-proxmox/talos-proxmox/lab/site/pve"
)

// Migrate moves a VM to another host and returns the task's UPID. A running one goes on running when
// online is set; disks on storages that are not shared move only with local.
func (c *Cluster) Migrate(host string, id int, target, targetStorage string, online, local bool, user string) (string, error) {
	c.s.mu.Lock()
	v, err := c.find(host, id)
	var to HostDef
	if err == nil {
		if to, err = c.host(target); err != nil {
			err = pve.Errorf("no such cluster node '%s'", target)
		}
	}
	if err == nil {
		err = v.unlocked()
	}
	if err == nil && targetStorage != "" {
		_, _, err = c.storage(to.Name, targetStorage)
	}
	running := c.s.running[vmKey{c.c.Name, id}] != nil
	c.s.mu.Unlock()
	switch {
	case err != nil:
		return "", err
	case to.Name == v.Host:
		return "", pve.Invalid("target", "target is local node.")
	case running && !online:
		return "", pve.Errorf("can't migrate running VM without --online")
	}

	if upid, managed := c.askHAToMove(v.Host, id, to.Name, user); managed {
		return upid, nil
	}

	return c.migrateTask(v, to, targetStorage, local, user), nil
}

// askHAToMove asks the HA manager to move a VM, which it does without local disks.
func (c *Cluster) askHAToMove(host string, id int, target, user string) (upid string, managed bool) {
	c.s.mu.Lock()
	v := c.c.VMs[id]
	managed = c.haResource(id) != nil
	c.s.mu.Unlock()
	if !managed {
		return "", false
	}

	return c.s.spawn(host, "hamigrate", strconv.Itoa(id), user, func(_ context.Context, say sayf) error {
		say("Requesting HA migration for VM %d to node %s", id, target)
		c.s.work.Go(func() {
			to, err := c.hostNamed(target)
			if err == nil && c.s.opts.Clock.Sleep(c.s.ctx, haRound) == nil {
				c.migrateTask(v, to, "", false, rootUser)
			}
		})

		return nil
	}), true
}

func (c *Cluster) migrateTask(v *vm, to HostDef, targetStorage string, local bool, user string) string {
	id := v.ID

	return c.s.spawn(v.Host, "qmigrate", strconv.Itoa(id), user, func(ctx context.Context, say sayf) error {
		defer c.lockVM(id)()
		if err := c.s.opts.Clock.Sleep(ctx, startTime); err != nil {
			return err
		}
		c.s.mu.Lock()
		defer c.s.mu.Unlock()

		say("starting migration of VM %d to node '%s'", id, to.Name)
		if err := c.migrate(v, to, targetStorage, local); err != nil {
			say("ERROR: Problem found while scanning volumes - %v", err)

			return errors.New("migration aborted")
		}

		return c.s.save()
	})
}

func (c *Cluster) migrate(v *vm, to HostDef, targetStorage string, local bool) error {
	for k := range v.Config {
		if strings.HasPrefix(k, "hostpci") && c.s.running[vmKey{c.c.Name, v.ID}] != nil {
			return fmt.Errorf("can't migrate VM which uses local devices: %s", k)
		}
	}

	type step struct {
		key string
		vol *volume
		d   StorageDef
	}
	var steps []step
	for _, k := range slices.Sorted(maps.Keys(v.Config)) {
		if !pve.DriveKey.MatchString(k) {
			continue
		}
		p := pve.ParseProperties("file", v.Config[k])
		vol, err := c.volume(v.Host, p.Get("file"))
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
		d, err := c.imageStorage(to.Name, dest)
		if err != nil {
			return err
		}
		steps = append(steps, step{k, vol, d})
	}

	for _, s := range steps {
		if err := c.relocate(v, s.vol, s.d, to.Name, s.vol.Format, true); err != nil {
			return err
		}
		p := pve.ParseProperties("file", v.Config[s.key])
		p.Set("file", s.vol.id())
		v.Config[s.key] = p.String()
	}
	v.Host = to.Name

	return nil
}
