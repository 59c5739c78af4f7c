// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package site

import (
	"context"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/talos-proxmox/talos-proxmox/lab/site/pve"
)

// instant are the options that a running VM takes at once; all others but drives wait for its next
// power cycle.
var instant = regexp.MustCompile(`^(name|description|tags|onboot|startup|protection|hookscript|lock|` +
	`migrate_\w+|template|vmstatestorage|unused\d+)$`)

// Update changes a VM's configuration. Settings that a running machine cannot take become pending.
func (c *Cluster) Update(host string, id int, params map[string]string, user string) error {
	params = maps.Clone(params)
	remove := pve.SplitList(params["delete"])
	wantDigest := params["digest"]
	for _, k := range []string{"delete", "digest", "node", "vmid", "force", "skiplock", "background_delay", "revert"} {
		delete(params, k)
	}
	if err := pve.CheckConfig(params); err != nil {
		return err
	}
	if err := checkRoot(params, user); err != nil {
		return err
	}
	if err := checkDelete(remove, params); err != nil {
		return err
	}

	defer c.lockVM(id)()
	c.s.mu.Lock()
	defer c.s.mu.Unlock()

	v, err := c.find(host, id)
	if err != nil {
		return err
	}
	if v.Lock != "" {
		return pve.Errorf("VM is locked (%s)", v.Lock)
	}
	if wantDigest != "" && wantDigest != digest(v.Config) {
		return pve.Errorf("detected modified configuration - file changed by other user? Try again.")
	}
	if err := c.checkDrives(v.Host, params); err != nil {
		return err
	}

	end := c.s.opts.Trace.Begin("vm.config", "vm/"+strconv.Itoa(id), map[string]string{
		"keys": strings.Join(slices.Sorted(maps.Keys(params)), ","), "delete": strings.Join(remove, ","),
	})
	err = c.change(v, params, remove, user)
	end(err)
	if err != nil {
		return err
	}

	return c.s.save()
}

// checkDelete refuses to remove what is set in the same call, and what is no option.
func checkDelete(remove []string, params map[string]string) error {
	plain := pve.PlainKeys()
	for _, k := range remove {
		if _, both := params[k]; both {
			return pve.Invalid("delete", "you can't use '-%s' and -delete %s' at the same time", k, k)
		}
		_, known := plain[k]
		if !known && !pve.NetKey.MatchString(k) && !pve.DriveKey.MatchString(k) && !pve.OtherKey.MatchString(k) {
			return pve.Invalid("delete", "unknown option '%s'", k)
		}
	}

	return nil
}

func (c *Cluster) change(v *vm, params map[string]string, remove []string, user string) error {
	running := c.s.running[vmKey{c.c.Name, v.ID}] != nil

	for _, k := range remove {
		if _, set := v.wanted()[k]; !set {
			continue // a host warns of it in its log, and goes on
		}
		if pve.IsTrue(v.Config["protection"]) && pve.DriveKey.MatchString(k) {
			return pve.Errorf("can't remove drive '%s' - protection mode enabled", k)
		}
		delete(v.Pending, k)
		switch {
		case pve.DriveKey.MatchString(k):
			if err := c.detach(v, k); err != nil {
				return err
			}
		case running && !instant.MatchString(k):
			if _, ok := v.Config[k]; ok && !slices.Contains(v.PendingDelete, k) {
				v.PendingDelete = append(v.PendingDelete, k)
			}
		default:
			delete(v.Config, k)
		}
	}

	for _, k := range slices.Sorted(maps.Keys(params)) {
		if err := c.changeOne(v, k, params[k], user, running); err != nil {
			return err
		}
	}

	return nil
}

func (c *Cluster) changeOne(v *vm, k, value, user string, running bool) error {
	v.PendingDelete = slices.DeleteFunc(v.PendingDelete, func(have string) bool { return have == k })

	switch {
	case pve.DriveKey.MatchString(k):
		return c.changeDrive(v, k, value, user)
	case pve.NetKey.MatchString(k):
		n := pve.ParseNet(value)
		if n.MAC == "" {
			n.MAC = pve.ParseNet(v.wanted()[k]).MAC // the address stays when only the rest changes
		}
		if n.MAC == "" {
			n.MAC = newMAC()
		}
		value = n.String()
	}

	if running && !instant.MatchString(k) {
		if v.Config[k] == value {
			delete(v.Pending, k)

			return nil
		}
		if v.Pending == nil {
			v.Pending = map[string]string{}
		}
		v.Pending[k] = value

		return nil
	}
	delete(v.Pending, k)
	v.Config[k] = value

	return nil
}

// changeDrive attaches a drive, or changes options of the one that is attached. Media and options take
// effect at once.
func (c *Cluster) changeDrive(v *vm, k, value, user string) error {
	old := pve.ParseProperties("file", v.Config[k])
	p := pve.ParseProperties("file", value)
	if _, had := v.Config[k]; had && old.Get("file") == p.Get("file") {
		if vol, err := c.volume(v.Host, p.Get("file")); err == nil {
			p.Set("size", pve.FormatSize(vol.Size))
		}
		p.Del("format")
		v.Config[k] = p.String()

		return nil
	}

	var made []*volume
	if strings.HasSuffix(p.Get("file"), ":cloudinit") && strings.Contains(old.Get("file"), "-cloudinit") {
		if err := c.detach(v, k); err != nil { // its contents are made anew at each start
			return err
		}
	}
	stored, err := c.attach(v, k, value, user, &made)
	if err != nil {
		return err
	}
	if _, had := v.Config[k]; had {
		if err := c.detach(v, k); err != nil {
			return err
		}
	}
	for key, s := range v.Config {
		if strings.HasPrefix(key, "unused") && s == pve.ParseProperties("file", stored).Get("file") {
			delete(v.Config, key)
		}
	}
	v.Config[k] = stored

	return nil
}

// Resize grows a disk to size ("20G", "+10G", bytes) and returns the task's UPID.
func (c *Cluster) Resize(host string, id int, disk, size, user string) (string, error) {
	grow, plus := strings.CutPrefix(size, "+")
	n, err := pve.ParseSize(grow)
	if err != nil {
		return "", pve.Invalid("size", "%s", err)
	}

	c.s.mu.Lock()
	v, err := c.find(host, id)
	c.s.mu.Unlock()
	if err != nil {
		return "", err
	}

	return c.s.spawn(v.Host, "resize", strconv.Itoa(id), user, func(context.Context, sayf) error {
		defer c.lockVM(id)()
		c.s.mu.Lock()
		defer c.s.mu.Unlock()

		stored, ok := v.Config[disk]
		if !ok {
			return pve.Errorf("disk '%s' does not exist", disk)
		}
		p := pve.ParseProperties("file", stored)
		if p.Get("media") == "cdrom" {
			return pve.Errorf("you can't resize a cdrom")
		}
		vol, err := c.volume(v.Host, p.Get("file"))
		if err != nil {
			return err
		}
		want := n
		if plus {
			want += vol.Size
		}
		if want < vol.Size {
			return pve.Errorf("shrinking disks is not supported")
		}
		vol.Size = want
		p.Set("size", pve.FormatSize(want))
		v.Config[disk] = p.String()

		return c.s.save()
	}), nil
}
