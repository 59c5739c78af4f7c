// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package site

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/talos-proxmox/talos-proxmox/lab/site/pve"
)

const (
	// haRound is how often the HA manager looks at what it manages.
	haRound = 10 * time.Second
	// haFence is how long a host has to be away before what ran there starts elsewhere.
	haFence = 2 * time.Minute

	haStarted = "started"
	haStopped = "stopped"
)

// haResource returns what high availability knows of a VM, nil when it leaves it alone. The caller holds the lock.
func (c *Cluster) haResource(id int) *HAResource {
	r := c.c.HAResources[fmt.Sprintf("vm:%d", id)]
	if r == nil || r.Settings["state"] == "ignored" {
		return nil
	}

	return r
}

// askHA asks the HA manager for a state in place of a task that would do it, and returns the task's UPID. It reports
// false where nobody manages the VM.
func (c *Cluster) askHA(host string, id int, kind, want, user string) (upid string, managed bool) {
	c.s.mu.Lock()
	managed = c.haResource(id) != nil
	c.s.mu.Unlock()
	if !managed {
		return "", false
	}

	return c.s.spawn(host, "ha"+kind, strconv.Itoa(id), user, func(_ context.Context, say sayf) error {
		say("Requesting HA %s for VM %d", kind, id)
		c.s.mu.Lock()
		defer c.s.mu.Unlock()
		if r := c.haResource(id); r != nil {
			r.Settings["state"] = want
		}
		c.haLook(id, haRound)

		return c.s.save()
	}), true
}

// haLook makes the HA manager look at a VM after a while. The caller holds the lock.
func (c *Cluster) haLook(id int, after time.Duration) {
	if c.haResource(id) == nil {
		return
	}
	c.s.work.Go(func() {
		if c.s.opts.Clock.Sleep(c.s.ctx, after) == nil {
			c.haAct(id)
		}
	})
}

// LookAfter makes the HA manager look at a VM whose resource was made or changed.
func (o Objects) LookAfter(sid string) {
	id, err := strconv.Atoi(strings.TrimPrefix(sid, "vm:"))
	if err == nil {
		o.c.haLook(id, haRound)
	}
}

// haAct brings a VM into the state that high availability wants, on its host or on another.
func (c *Cluster) haAct(id int) {
	c.s.mu.Lock()
	r, v := c.haResource(id), c.c.VMs[id]
	running := c.s.running[vmKey{c.c.Name, id}] != nil
	if r == nil || v == nil {
		c.s.mu.Unlock()

		return
	}
	want, host, lock := r.Settings["state"], v.Host, v.Lock
	if c.s.down(host) && want != haStopped {
		host = c.elsewhere(v, r)
	}
	c.s.mu.Unlock()

	switch {
	case host == "" || lock != "":
	case (want == haStarted || want == "enabled") && !running:
		c.startTask(host, id, rootUser)
	case (want == haStopped || want == "disabled") && running:
		c.shutdownTask(host, id, 0, true, rootUser)
	}
}

// elsewhere moves a VM whose host is gone to one that reaches all its disks, "" when there is none. The caller holds
// the lock.
func (c *Cluster) elsewhere(v *vm, r *HAResource) string {
	for key, value := range v.Config {
		vol, err := c.volume(v.Host, pve.ParseProperties("file", value).Get("file"))
		if pve.DriveKey.MatchString(key) && err == nil && vol.Host != "" {
			return "" // its disk went with the host
		}
	}
	allowed := c.haHosts(v.ID, r)
	for _, h := range c.c.Hosts {
		if h.Name != v.Host && !c.s.down(h.Name) && (allowed == nil || allowed[h.Name]) {
			c.s.opts.Trace.Begin("ha.relocate", "vm/"+strconv.Itoa(v.ID), map[string]string{"from": v.Host, "to": h.Name})(nil)
			v.Host = h.Name

			return h.Name
		}
	}

	return ""
}

// haHosts returns the hosts that a restricted group or a strict rule leaves a VM, nil for all of them.
func (c *Cluster) haHosts(id int, r *HAResource) map[string]bool {
	nodes := ""
	if g := c.c.HAGroups[r.Settings["group"]]; g != nil && pve.IsTrue(g.Settings["restricted"]) {
		nodes = g.Settings["nodes"]
	}
	for _, rule := range c.c.HARules {
		ours := false
		for _, sid := range pve.SplitList(rule["resources"]) {
			ours = ours || sid == fmt.Sprintf("vm:%d", id)
		}
		if ours && rule["type"] == "node-affinity" && pve.IsTrue(rule["strict"]) && !pve.IsTrue(rule["disable"]) {
			nodes = rule["nodes"]
		}
	}
	if nodes == "" {
		return nil
	}
	allowed := map[string]bool{}
	for _, node := range pve.SplitList(nodes) {
		name, _, _ := strings.Cut(node, ":")
		allowed[name] = true
	}

	return allowed
}

// fence makes the HA manager look after what ran on a host that is gone.
func (c *Cluster) fence(host string) {
	c.s.mu.Lock()
	defer c.s.mu.Unlock()

	for _, v := range c.c.sortedVMs() {
		if v.Host == host {
			c.haLook(v.ID, haFence)
		}
	}
}
