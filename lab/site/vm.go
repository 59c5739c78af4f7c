// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package site

import (
	"crypto/sha1" // G505: a digest as Proxmox VE forms it, no security
	"encoding/hex"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/talos-proxmox/talos-proxmox/lab/site/pve"
)

// VM describes a virtual machine at one moment.
type VM struct {
	ID      int               `json:"vmid"`
	Name    string            `json:"name"`
	Host    string            `json:"host"`
	Config  map[string]string `json:"config"`  // what runs
	Wanted  map[string]string `json:"wanted"`  // with pending changes
	Pending bool              `json:"pending"` // whether the two differ
	Running bool              `json:"running"`
	// State tells what is inside: "off", "guest" (an operating system runs), "no boot device", "halted".
	State  string `json:"state"`
	Lock   string `json:"lock,omitempty"`
	PID    int    `json:"pid,omitempty"`
	Uptime int    `json:"uptime,omitempty"` // seconds
	Digest string `json:"digest,omitempty"`
	Pool   string `json:"pool,omitempty"`
	// File are the lines of its configuration file.
	File []string `json:"-"`
}

// VMs returns the cluster's virtual machines by id.
func (c *Cluster) VMs() []VM {
	c.s.mu.Lock()
	defer c.s.mu.Unlock()

	var all []VM
	for _, v := range c.c.sortedVMs() {
		all = append(all, c.view(v))
	}

	return all
}

// VM returns a virtual machine of a host.
func (c *Cluster) VM(host string, id int) (VM, error) {
	c.s.mu.Lock()
	defer c.s.mu.Unlock()

	v, err := c.find(host, id)
	if err != nil {
		return VM{}, err
	}

	return c.view(v), nil
}

// find looks a VM up on its host, as Proxmox VE does by the path of its file. The caller holds the lock.
func (c *Cluster) find(host string, id int) (*vm, error) {
	h, err := c.host(host)
	if err != nil {
		return nil, err
	}
	if v, ok := c.c.VMs[id]; ok && v.Host == h.Name {
		return v, nil
	}

	return nil, pve.Errorf("Configuration file 'nodes/%s/qemu-server/%d.conf' does not exist", h.Name, id)
}

func (c *Cluster) view(v *vm) VM {
	out := VM{
		ID: v.ID, Name: v.Config["name"], Host: v.Host, Config: maps.Clone(v.Config), Wanted: v.wanted(),
		Pending: len(v.Pending)+len(v.PendingDelete) > 0, Lock: v.Lock, State: stateOff, Digest: digest(v.Config), File: v.file(),
	}
	if out.Name == "" {
		out.Name = "VM" + strconv.Itoa(v.ID)
	}
	for name, p := range c.c.Pools {
		if slices.Contains(p.VMs, v.ID) {
			out.Pool = name
		}
	}
	if p := c.s.running[vmKey{c.c.Name, v.ID}]; p != nil {
		out.Running, out.State, out.PID = true, p.state, p.pid
		out.Uptime = int(time.Since(p.started).Seconds())
	}

	return out
}

// file returns the lines of a VM's configuration file as its host writes it.
func (v *vm) file() []string {
	lines := pve.SettingLines(v.Config, v.Lock)
	if len(v.Pending)+len(v.PendingDelete) == 0 {
		return lines
	}
	lines = append(lines, "", "[PENDING]")
	if len(v.PendingDelete) > 0 {
		lines = append(lines, "delete: "+strings.Join(slices.Sorted(slices.Values(v.PendingDelete)), ","))
	}

	return append(lines, pve.SettingLines(v.Pending, "")...)
}

func digest(config map[string]string) string {
	var b strings.Builder
	for _, k := range slices.Sorted(maps.Keys(config)) {
		b.WriteString(k + ": " + config[k] + "\n")
	}
	sum := sha1.Sum([]byte(b.String())) // G401: see the import

	return hex.EncodeToString(sum[:])
}

// lockVM makes the steps on one VM follow each other.
func (c *Cluster) lockVM(id int) (unlock func()) {
	key := vmKey{c.c.Name, id}

	c.s.mu.Lock()
	m := c.s.locks[key]
	if m == nil {
		m = &sync.Mutex{}
		c.s.locks[key] = m
	}
	c.s.mu.Unlock()

	m.Lock()

	return m.Unlock
}

// NextID returns the first free VM id from 100, or id itself when it is free.
func (c *Cluster) NextID(id int) (int, error) {
	c.s.mu.Lock()
	defer c.s.mu.Unlock()

	if id != 0 {
		if id < 100 {
			return 0, pve.Invalid("vmid", "invalid format - value does not look like a valid VM ID")
		}
		if _, taken := c.c.VMs[id]; taken {
			return 0, pve.Invalid("vmid", "VM %d already exists", id)
		}

		return id, nil
	}

	for id = 100; ; id++ {
		if _, taken := c.c.VMs[id]; !taken {
			return id, nil
		}
	}
}
