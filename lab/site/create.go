// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package site

import (
	"context"
	"crypto/rand"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/talos-proxmox/talos-proxmox/lab/site/guest"
	"github.com/talos-proxmox/talos-proxmox/lab/site/pve"
	"github.com/talos-proxmox/talos-proxmox/lab/site/pve/schema"
)

// Times that a host takes, in the site's time.
const (
	createTime = 2 * time.Second
	deleteTime = time.Second
	startTime  = 2 * time.Second
)

// Create makes a VM from the parameters of a create call and returns the task's UPID.
func (c *Cluster) Create(host string, id int, params map[string]string, user string) (string, error) {
	params = maps.Clone(params)
	pool, start := params["pool"], pve.IsTrue(params["start"])
	for _, k := range []string{"pool", "start", "vmid", "node", "storage", "force", "unique", "bwlimit", "archive"} {
		delete(params, k)
	}

	d, err := schema.Load(c.PVE())
	if err != nil {
		return "", err
	}
	if id < 100 || id > 999999999 {
		return "", pve.Invalid("vmid", "invalid format - value does not look like a valid VM ID")
	}
	if err := d.Settings(params); err != nil {
		return "", err
	}
	if err := checkRoot(params, user); err != nil {
		return "", err
	}
	if err := tidy(d, params); err != nil {
		return "", err
	}
	if tags, ok := params["tags"]; ok && c.PVE() > 8 { // the version before keeps them as they are given
		params["tags"] = uniqueTags(tags)
	}

	v := &vm{ID: id, Config: map[string]string{}, Lock: "create"}
	if err := c.reserve(v, host, pool, params); err != nil {
		return "", err
	}

	return c.s.spawn(v.Host, "qmcreate", strconv.Itoa(id), user, func(ctx context.Context, say sayf) error {
		unlock := c.lockVM(id)
		err := c.build(ctx, v, params, user, say)
		unlock()
		if err != nil {
			return fmt.Errorf("unable to create VM %d - %w", id, err)
		}
		if start {
			return c.start(ctx, v)
		}

		return nil
	}), nil
}

// reserve takes the id.
func (c *Cluster) reserve(v *vm, host, pool string, params map[string]string) error {
	c.s.mu.Lock()
	defer c.s.mu.Unlock()

	h, err := c.host(host)
	if err != nil {
		return err
	}
	v.Host = h.Name
	if have, taken := c.c.VMs[v.ID]; taken {
		return pve.Errorf("unable to create VM %d - VM %d already exists on node '%s'", v.ID, v.ID, have.Host)
	}
	if pool != "" {
		p, ok := c.c.Pools[pool]
		if !ok {
			return &pve.Error{Status: http.StatusForbidden, Message: fmt.Sprintf("Permission check failed (pool '%s' does not exist)", pool)}
		}
		p.VMs = append(p.VMs, v.ID)
	}
	if err := c.checkDrives(h.Name, params); err != nil {
		return err
	}
	c.c.VMs[v.ID] = v

	return c.s.save()
}

// checkDrives refuses storages that cannot be meant, before there is a task.
func (c *Cluster) checkDrives(host string, params map[string]string) error {
	for k, value := range params {
		if !pve.DriveKey.MatchString(k) {
			continue
		}
		p := pve.ParseProperties("file", value)
		file := p.Get("file")
		storage, _, ok := strings.Cut(file, ":")
		if !ok {
			continue
		}
		wantsImages := newDisk.MatchString(file) || strings.HasSuffix(file, ":cloudinit")
		if wantsImages {
			if _, err := c.imageStorage(host, storage); err != nil && !strings.HasSuffix(file, ":cloudinit") {
				return err
			}
		} else if _, _, err := c.storage(host, storage); err != nil {
			return err
		}
	}

	return nil
}

func (c *Cluster) build(ctx context.Context, v *vm, params map[string]string, user string, say sayf) error {
	err := c.s.opts.Clock.Take(ctx, guest.StepCreate, strconv.Itoa(v.ID), createTime)
	if err == nil {
		err = c.s.trouble(ctx, v.Host, "qmcreate", strconv.Itoa(v.ID))
	}

	c.s.mu.Lock()
	defer c.s.mu.Unlock()

	var made []*volume
	if err == nil {
		err = c.fillConfig(v, params, user, &made, say)
	}
	if err != nil {
		for _, vol := range made {
			if e := c.free(vol); e != nil {
				say("%v", e)
			}
		}
		c.drop(v)
		if e := c.s.save(); e != nil {
			say("%v", e)
		}

		return err
	}

	v.Lock = ""
	if _, ok := v.Config["boot"]; !ok {
		v.Config["boot"] = printBoot(defaultBoot(v.Config))
	}
	if p := pve.ParseProperties("", v.Config["smbios1"]); p.Get("uuid") == "" {
		p.Set("uuid", uuid.NewString())
		v.Config["smbios1"] = p.String()
	}
	if v.Config["vmgenid"] == "" {
		v.Config["vmgenid"] = uuid.NewString()
	}
	v.Config["meta"] = fmt.Sprintf("creation-qemu=9.0.2,ctime=%d", time.Now().Unix())

	return c.s.save()
}

func (c *Cluster) fillConfig(v *vm, params map[string]string, user string, made *[]*volume, say sayf) error {
	for _, k := range slices.Sorted(maps.Keys(params)) {
		value := params[k]
		switch {
		case pve.DriveKey.MatchString(k):
			stored, err := c.attach(v, k, value, user, made)
			if err != nil {
				return err
			}
			say("%s: successfully created disk '%s'", k, stored)
			value = stored
		case pve.NetKey.MatchString(k):
			n := pve.ParseNet(value)
			if n.MAC == "" {
				n.MAC = newMAC()
			}
			value = n.String()
		}
		v.Config[k] = value
	}

	return nil
}

// drop takes a VM out of the cluster, and out of what refers to it.
func (c *Cluster) drop(v *vm) {
	delete(c.c.VMs, v.ID)
	for _, p := range c.c.Pools {
		p.VMs = slices.DeleteFunc(p.VMs, func(id int) bool { return id == v.ID })
	}
}

// CheckRoot refuses settings that only root@pam itself may give.
func CheckRoot(params map[string]string, user string) error { return checkRoot(params, user) }

// checkRoot refuses options that only root@pam itself may set; tokens may not, not even root's.
func checkRoot(params map[string]string, user string) error {
	if user == "root@pam" {
		return nil
	}

	for _, k := range slices.Sorted(maps.Keys(params)) {
		v := params[k]
		switch {
		case slices.Contains([]string{
			"affinity", "amd-sev", "arch", "args", "hookscript", "hugepages", "intel-tdx", "ivshmem", "keephugepages", "lock", "vmgenid",
			"vmstate",
		}, k):
			return pve.Errorf("only root can set '%s' config", k)
		case strings.HasPrefix(k, "hostpci"):
			if p := pve.ParseProperties("host", v); p.Get("mapping") == "" {
				return pve.Errorf("only root can set '%s' config for non-mapped devices", k)
			}
		case strings.HasPrefix(k, "usb"):
			if p := pve.ParseProperties("host", v); p.Get("mapping") == "" && p.Get("host") != "spice" {
				return pve.Errorf("only root can set '%s' config for real devices", k)
			}
		case strings.HasPrefix(k, "serial") && v != "socket":
			return pve.Errorf("only root can modify '%s' config for real devices", k)
		}
	}

	return nil
}

// newMAC returns an address with the prefix that Proxmox VE uses.
func newMAC() string {
	var b [3]byte
	_, _ = rand.Read(b[:]) // never fails

	return fmt.Sprintf("BC:24:11:%02X:%02X:%02X", b[0], b[1], b[2])
}

// Delete removes a VM with its disks and returns the task's UPID. purge takes it out of HA too.
func (c *Cluster) Delete(host string, id int, purge bool, user string) (string, error) {
	c.s.mu.Lock()
	v, err := c.find(host, id)
	if err == nil {
		err = c.deletable(v, purge)
	}
	c.s.mu.Unlock()
	if err != nil {
		return "", err
	}

	return c.s.spawn(v.Host, "qmdestroy", strconv.Itoa(id), user, func(ctx context.Context, say sayf) error {
		defer c.lockVM(id)()
		defer c.s.tellGone()
		if err := c.s.opts.Clock.Sleep(ctx, deleteTime); err != nil {
			return err
		}

		c.s.mu.Lock()
		defer c.s.mu.Unlock()
		if err := c.deletable(v, purge); err != nil {
			return err
		}
		if err := v.unlocked(); err != nil && v.Lock != lockSuspended {
			return err
		}
		for _, vol := range c.volumesOf(id) {
			if err := c.free(vol); err != nil {
				return err
			}
			say("Logical volume \"%s\" successfully removed.", vol.Name)
		}
		delete(c.c.HAResources, fmt.Sprintf("vm:%d", id))
		c.drop(v)

		return c.s.save()
	}), nil
}

func (c *Cluster) volumesOf(id int) []*volume {
	var own []*volume
	for _, vol := range c.c.Volumes {
		if vol.VMID == id {
			own = append(own, vol)
		}
	}

	return own
}

func (c *Cluster) deletable(v *vm, purge bool) error {
	switch {
	case c.c.VMs[v.ID] != v:
		return pve.Errorf("Configuration file 'nodes/%s/qemu-server/%d.conf' does not exist", v.Host, v.ID)
	case pve.IsTrue(v.Config["protection"]):
		return pve.Errorf("can't remove VM %d - protection mode enabled", v.ID)
	case c.s.running[vmKey{c.c.Name, v.ID}] != nil:
		return pve.Errorf("VM %d is running - destroy failed", v.ID)
	case !purge && c.c.HAResources[fmt.Sprintf("vm:%d", v.ID)] != nil:
		return pve.Errorf("unable to remove VM %d - used in HA resources and purge parameter not set.", v.ID)
	}

	return nil
}
