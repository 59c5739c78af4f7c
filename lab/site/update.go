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

	"github.com/google/uuid"

	"github.com/talos-proxmox/talos-proxmox/lab/site/pve"
	"github.com/talos-proxmox/talos-proxmox/lab/site/pve/schema"
)

// instant are the options that a running VM takes at once; all others but drives wait for its next
// power cycle.
var instant = regexp.MustCompile(`^(name|description|tags|onboot|startup|protection|hookscript|lock|` +
	`migrate_\w+|vmstatestorage|unused\d+)$`)

// Update changes a VM's configuration. Settings that a running machine cannot take become pending.
func (c *Cluster) Update(host string, id int, params map[string]string, user string) error {
	d, err := schema.Load(c.PVE())
	if err != nil {
		return err
	}
	given := params
	params = maps.Clone(params)
	remove, revert := pve.SplitList(params["delete"]), pve.SplitList(params["revert"])
	for _, k := range []string{
		"delete", "digest", "node", "vmid", "force", "skiplock", "background_delay", "revert", "import-working-storage",
	} {
		delete(params, k)
	}
	if err := checkUpdate(d, given, params, remove, revert, user); err != nil {
		return err
	}

	defer c.lockVM(id)()
	c.s.mu.Lock()
	defer c.s.mu.Unlock()

	v, err := c.find(host, id)
	if err != nil {
		return err
	}
	if err := v.unlocked(); err != nil && !pve.IsTrue(given["skiplock"]) {
		return err
	}
	if want := given["digest"]; want != "" && want != digest(v.Config) {
		return pve.Errorf("detected modified configuration - file changed by other user? Try again.")
	}
	if err := c.checkDrives(v.Host, params); err != nil {
		return err
	}

	end := c.s.opts.Trace.Begin("vm.config", "vm/"+strconv.Itoa(id), map[string]string{
		"keys": strings.Join(slices.Sorted(maps.Keys(params)), ","), "delete": strings.Join(remove, ","),
	})
	for _, k := range revert {
		delete(v.Pending, k)
		v.PendingDelete = slices.DeleteFunc(v.PendingDelete, func(have string) bool { return have == k })
	}
	err = c.change(v, params, remove, user)
	end(err)
	if err != nil {
		return err
	}

	return c.s.save()
}

// UpdateTask changes a VM's configuration in a task and returns its UPID.
func (c *Cluster) UpdateTask(host string, id int, params map[string]string, user string) (string, error) {
	if err := c.Update(host, id, params, user); err != nil {
		return "", err
	}
	h, err := c.hostNamed(host)
	if err != nil {
		return "", err
	}

	return c.s.spawn(h.Name, "qmconfig", strconv.Itoa(id), user, func(context.Context, sayf) error { return nil }), nil
}

// checkUpdate refuses what cannot be changed, whatever the VM.
func checkUpdate(d *schema.Description, given, params map[string]string, remove, revert []string, user string) error {
	if err := d.Settings(given); err != nil {
		return err
	}
	if err := checkRoot(params, user); err != nil {
		return err
	}
	if len(params)+len(remove)+len(revert) == 0 {
		return pve.Errorf("no options specified")
	}
	if err := checkNames(d, "revert", revert, params); err != nil {
		return err
	}
	if err := checkNames(d, "delete", remove, params); err != nil {
		return err
	}
	for old, now := range map[string]string{"cdrom": "ide2", "smp": "sockets"} {
		if value, ok := params[old]; ok {
			params[now] = value
			delete(params, old)
		}
	}
	if cd, ok := given["cdrom"]; ok {
		params["ide2"] = cd + ",media=cdrom"
	}

	return tidy(d, params)
}

// checkNames refuses to remove or take back what is set in the same call, and what is no option.
func checkNames(d *schema.Description, what string, names []string, params map[string]string) error {
	for _, k := range names {
		if _, both := params[k]; both {
			return pve.Invalid(what, "you can't use '-%s' and -%s %s' at the same time", k, what, k)
		}
		if !d.IsSetting(k) {
			return pve.Invalid(what, "unknown option '%s'", k)
		}
	}

	return nil
}

// tidy brings settings into the form in which a host keeps them.
func tidy(d *schema.Description, params map[string]string) error {
	for k, value := range params {
		switch {
		case k == "cpuunits" && value == "1":
			params[k] = "2"
		case k == "vmgenid" && value == "1":
			params[k] = uuid.NewString()
		case k == "cipassword":
			params[k] = "$5$lab$" + digest(map[string]string{k: value})
		case k == "sshkeys" && strings.Trim(value, "%20") != "" && !strings.HasPrefix(value, "ssh-") && !strings.HasPrefix(value, "ecdsa-"):
			return pve.Errorf("SSH public key validation error")
		case pve.DriveKey.MatchString(k), pve.NetKey.MatchString(k):
			params[k] = d.Normal(k, value)
		}
	}

	return nil
}

// uniqueTags returns tags in lower case, each once, in order.
func uniqueTags(s string) string {
	tags := pve.SplitList(strings.ToLower(s))
	slices.Sort(tags)

	return strings.Join(slices.Compact(tags), ";")
}

func (c *Cluster) change(v *vm, params map[string]string, remove []string, user string) error {
	running := c.s.running[vmKey{c.c.Name, v.ID}] != nil

	for _, k := range remove {
		if _, set := v.wanted()[k]; !set && (k != "lock" || v.Lock == "") {
			continue // a host warns of it in its log, and goes on
		}
		if pve.IsTrue(v.Config["protection"]) && pve.DriveKey.MatchString(k) {
			return pve.Errorf("can't remove drive '%s' - protection mode enabled", k)
		}
		delete(v.Pending, k)
		c.unboot(v, k)
		switch {
		case k == "lock":
			v.Lock = ""
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

	if err := v.checkSizes(params); err != nil {
		return err
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
	case k == "lock":
		v.Lock = value

		return nil
	case k == "tags":
		value = uniqueTags(value)
	case k == "description" && value == "":
		delete(v.Config, k)

		return nil
	case pve.DriveKey.MatchString(k):
		if err := c.changeDrive(v, k, value, user); err != nil {
			return err
		}
		c.bootCD(v, k)

		return nil
	case k == "boot":
		if err := v.checkBoot(value); err != nil {
			return err
		}
	case pve.NetKey.MatchString(k):
		n := pve.ParseNet(value)
		if n.MAC == "" { // a new one: the old is not kept
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

		if err := v.unlocked(); err != nil {
			return err
		}
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
