// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package site

import (
	"strings"

	"github.com/talos-proxmox/talos-proxmox/lab/fault"
	"github.com/talos-proxmox/talos-proxmox/lab/site/pve"
)

// down reports whether a host has no power.
func (s *Site) down(host string) bool {
	_, yes := s.opts.Faults.Holds(fault.HostDown, fault.About{"host": {host}})

	return yes
}

// HostUp reports whether a host has power.
func (c *Cluster) HostUp(host string) bool { return !c.s.down(host) }

// cutOff reports whether a name is outside the site, and nothing there answers.
func (s *Site) cutOff(name string) bool {
	if s.opts.Faults == nil || !s.opts.Faults.CutOff(name) {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()

	for _, c := range s.state.Clusters {
		for _, h := range c.Hosts {
			if goesBy(h, name) {
				return false
			}
		}
	}

	return true
}

// unpowered reports whether a name or address is that of a host without power.
func (s *Site) unpowered(name string) bool {
	if len(s.opts.Faults.List()) == 0 {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()

	for _, c := range s.state.Clusters {
		for _, h := range c.Hosts {
			if goesBy(h, name) && s.down(h.Name) {
				return true
			}
		}
	}

	return false
}

// watchFaults lets hosts lose their power and get it back, and nodes die, until the site is closed.
func (s *Site) watchFaults() {
	dark := map[string]bool{}
	for s.ctx.Err() == nil {
		changed := s.opts.Faults.Changed()
		for _, c := range s.Clusters() {
			for _, h := range c.Hosts() {
				down := s.down(h.Name)
				key := c.Name() + "/" + h.Name
				if down && !dark[key] {
					c.powerOff(h.Name)
				}
				if !down && dark[key] {
					c.powerOnAll(h.Name)
				}
				dark[key] = down
			}
		}
		s.loseNodes()

		select {
		case <-changed:
		case <-s.ctx.Done():
		}
	}
}

// powerOff cuts the power of every VM of a host.
func (c *Cluster) powerOff(host string) {
	c.s.mu.Lock()
	var cut []*process
	for _, v := range c.c.sortedVMs() {
		if p := c.s.running[vmKey{c.c.Name, v.ID}]; p != nil && v.Host == host {
			cut = append(cut, p)
		}
	}
	c.s.mu.Unlock()

	for _, p := range cut {
		p.cancel()
		<-p.done
	}
	c.fence(host)
}

// powerOnAll starts what a host starts when it boots.
func (c *Cluster) powerOnAll(host string) {
	c.s.mu.Lock()
	defer c.s.mu.Unlock()

	for _, v := range c.c.sortedVMs() {
		if v.Host != host || !pve.IsTrue(v.Config["onboot"]) || c.s.running[vmKey{c.c.Name, v.ID}] != nil {
			continue
		}
		if err := c.switchOn(v); err != nil {
			c.s.opts.Log.Error("starting a VM with its host", "vm", v.ID, "error", err)
		}
	}
}

// goesBy reports whether a host has a name or address.
func goesBy(h HostDef, name string) bool {
	short, _, _ := strings.Cut(name, ".")

	return strings.EqualFold(h.Name, name) || strings.EqualFold(h.Name, short) || (h.Address != "" && h.Address == name)
}
