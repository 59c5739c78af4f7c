// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package site

import (
	"context"
	"strconv"

	"github.com/talos-proxmox/talos-proxmox/lab/fault"
	"github.com/talos-proxmox/talos-proxmox/lab/site/guest"
)

// loseNodes kills what runs in VMs whose nodes are to die now.
func (s *Site) loseNodes() {
	s.mu.Lock()
	defer s.mu.Unlock()

	for _, c := range s.state.Clusters {
		for _, v := range c.sortedVMs() {
			p := s.running[vmKey{c.Name, v.ID}]
			if p == nil || p.cut == nil || p.lost != nil {
				continue
			}
			about := fault.About{"node": s.names(v), "when": {fault.Now}}
			if f, yes := s.opts.Faults.Strike(fault.NodeLost, "vm/"+strconv.Itoa(v.ID), about); yes {
				p.lost = f.Over
				p.cut()
			}
		}
	}
}

// killer returns how what boots now can be killed.
func (s *Site) killer(cut context.CancelFunc, p *process) func(<-chan struct{}) {
	s.mu.Lock()
	p.cut = cut
	s.mu.Unlock()

	return func(until <-chan struct{}) {
		s.mu.Lock()
		if p.lost == nil {
			p.lost = until
		}
		s.mu.Unlock()
		cut()
	}
}

// awaitReturn leaves a VM whose inside was killed as it is, until it may boot again.
func (c *Cluster) awaitReturn(ctx context.Context, p *process) {
	c.s.mu.Lock()
	until := p.lost
	p.cut = nil
	c.s.mu.Unlock()
	if until == nil {
		return
	}

	c.s.setState(p, stateLost)
	select {
	case <-until:
	case <-p.reset:
	case <-ctx.Done():
	}
	c.s.mu.Lock()
	p.lost = nil
	p.listen()
	c.s.mu.Unlock()
}

// returns reports whether what is on the disk comes up; where it does not, it waits until it may, or
// until the VM is reset.
func (c *Cluster) returns(ctx context.Context, m *guest.Machine, p *process) bool {
	if m.BootedFromCD || m.BootDisk == nil || len(m.BootDisk.Load()) == 0 {
		return true
	}
	f, yes := m.Faults.Strike(fault.NoReturn, "vm/"+strconv.Itoa(m.VMID), fault.About{"node": m.Names})
	if !yes {
		return true
	}
	c.s.setState(p, stateLost)

	select {
	case <-f.Over:
	case <-ctx.Done():
		return false
	}
	c.s.mu.Lock()
	p.listen()
	m.ShutdownRequested = p.shutdown
	c.s.mu.Unlock()

	return true
}

// namesOf returns the names of the VM with that id.
func (s *Site) namesOf(id int) []string {
	s.mu.Lock()
	defer s.mu.Unlock()

	for _, c := range s.state.Clusters {
		if v, ok := c.VMs[id]; ok {
			return s.names(v)
		}
	}

	return []string{strconv.Itoa(id)}
}

// names returns what a fault may call a VM. The caller holds the lock.
func (s *Site) names(v *vm) []string {
	names := []string{strconv.Itoa(v.ID)}
	if n := v.Config["name"]; n != "" {
		names = append(names, n)
	}
	for _, ip := range cloudInit("", v.Config).IPConfigs {
		if ip.IPv4.IsValid() {
			names = append(names, ip.IPv4.Addr().String())
		}
		if ip.IPv6.IsValid() {
			names = append(names, ip.IPv6.Addr().String())
		}
	}

	return names
}

// NodeNames returns what faults may call the VMs of the site.
func (s *Site) NodeNames() []string {
	s.mu.Lock()
	defer s.mu.Unlock()

	var names []string
	for _, c := range s.state.Clusters {
		for _, v := range c.sortedVMs() {
			names = append(names, s.names(v)...)
		}
	}

	return names
}
