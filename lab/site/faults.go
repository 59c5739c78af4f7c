// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package site

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/talos-proxmox/talos-proxmox/lab/fault"
)

// trouble fails a task, or holds it up, where a fault says so.
func (s *Site) trouble(ctx context.Context, node, kind, id string) error {
	about := fault.About{"host": {node}, "type": {kind}, "vm": {id}}
	if n, err := strconv.Atoi(id); err == nil {
		about["vm"] = s.namesOf(n)
	}
	object := kind + "/" + cmp.Or(id, node)

	if f, yes := s.opts.Faults.Strike(fault.TaskHang, object, about); yes {
		select {
		case <-f.Over:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	f, yes := s.opts.Faults.Strike(fault.TaskError, object, about)
	if !yes {
		return nil
	}
	if m := f.With["message"]; m != "" {
		return errors.New(m)
	}

	return errors.New(taskError(kind, id))
}

// taskError is what a task of that type often fails with.
func taskError(kind, id string) string {
	switch kind {
	case "qmstart":
		return "start failed: QEMU exited with code 1"
	case "download":
		return "download failed: exit code 4"
	case "imgdel", "imgcopy":
		return "can't lock file '/var/lock/pve-manager/pve-storage-local' - got timeout"
	}

	return fmt.Sprintf("can't lock file '/var/lock/qemu-server/lock-%s.conf' - got timeout", id)
}

// damage is what the network does to a download.
func (s *Site) damage(host, name string, data []byte, say sayf) ([]byte, error) {
	about := fault.About{"host": {host}}
	if _, yes := s.opts.Faults.Strike(fault.DownloadCut, "download/"+name, about); yes {
		say("Connection closed at byte %d. Retrying.", len(data)/2)
		say("Giving up.")

		return nil, errors.New(taskError("download", ""))
	}
	if _, yes := s.opts.Faults.Strike(fault.WrongChecksum, "download/"+name, about); yes && len(data) > 0 {
		data = slices.Clone(data)
		for i := range data {
			data[i] ^= 0xff
		}
	}

	return data, nil
}

// full tells whether nothing more fits on a storage.
func (s *Site) full(host string, d StorageDef) bool {
	_, yes := s.opts.Faults.Holds(fault.DatastoreFull, fault.About{"host": {host}, "storage": {d.ID}})

	return yes
}

// noSpace is how making a disk fails on a full storage.
func noSpace(d StorageDef, disk string) error {
	if d.fileBased() {
		return fmt.Errorf("unable to create image: qemu-img: %s/images/%s: Could not resize file: No space left on device", d.path(), disk)
	}

	return fmt.Errorf("lvcreate 'pve/%s' error:   Cannot create new thin volume, free space in thin pool pve/data reached threshold.", disk) //nolint:revive,staticcheck // LVM's own words
}

// down tells whether a host has no power.
func (s *Site) down(host string) bool {
	_, yes := s.opts.Faults.Holds(fault.HostDown, fault.About{"host": {host}})

	return yes
}

// HostUp tells whether a host has power.
func (c *Cluster) HostUp(host string) bool { return !c.s.down(host) }

// unpowered tells whether a name or address is that of a host without power.
func (s *Site) unpowered(name string) bool {
	if len(s.opts.Faults.List()) == 0 {
		return false
	}
	short, _, _ := strings.Cut(name, ".")

	s.mu.Lock()
	defer s.mu.Unlock()

	for _, c := range s.state.Clusters {
		for _, h := range c.Hosts {
			own := strings.EqualFold(h.Name, name) || strings.EqualFold(h.Name, short) || (h.Address != "" && h.Address == name)
			if own && s.down(h.Name) {
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
}

// powerOnAll starts what a host starts when it boots.
func (c *Cluster) powerOnAll(host string) {
	c.s.mu.Lock()
	defer c.s.mu.Unlock()

	for _, v := range c.c.sortedVMs() {
		if v.Host != host || !isTrue(v.Config["onboot"]) || c.s.running[vmKey{c.c.Name, v.ID}] != nil {
			continue
		}
		if err := c.switchOn(v); err != nil {
			c.s.opts.Log.Error("starting a VM with its host", "vm", v.ID, "error", err)
		}
	}
}

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

// loser is how what boots now can be killed.
func (s *Site) loser(cut context.CancelFunc, p *process) func(<-chan struct{}) {
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

	c.s.setState(p, stateLost, nil)
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

// returns tells whether what is on the disk comes up; where it does not, it waits until it may, or
// until the VM is reset.
func (c *Cluster) returns(ctx context.Context, m *Machine, p *process) bool {
	if m.BootedFromCD || m.BootDisk == nil || len(m.BootDisk.Load()) == 0 {
		return true
	}
	f, yes := m.Faults.Strike(fault.NoReturn, "vm/"+strconv.Itoa(m.VMID), fault.About{"node": m.Names})
	if !yes {
		return true
	}
	c.s.setState(p, stateLost, nil)

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

// namesOf are the names of the VM with that id.
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

// names are what a fault may call a VM. The caller holds the lock.
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

// NodeNames are what faults may call the VMs of the site.
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
