// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package site

import (
	"github.com/talos-proxmox/talos-proxmox/lab/site/guest"
	"github.com/talos-proxmox/talos-proxmox/lab/site/pve"
)

// AgentInterfaces returns what a VM's guest agent reports.
func (c *Cluster) AgentInterfaces(host string, id int) ([]guest.Interface, error) {
	c.s.mu.Lock()
	v, err := c.find(host, id)
	if err != nil {
		c.s.mu.Unlock()

		return nil, err
	}
	p := c.s.running[vmKey{c.c.Name, id}]
	enabled := agentEnabled(v.Config["agent"])
	var report func() []guest.Interface
	if p != nil {
		report = p.agent
	}
	c.s.mu.Unlock()

	switch {
	case !enabled:
		return nil, pve.Errorf("No QEMU guest agent configured")
	case p == nil:
		return nil, pve.Errorf("VM %d is not running", id)
	case report == nil:
		return nil, pve.Errorf("QEMU guest agent is not running")
	}

	return report(), nil
}

func agentEnabled(s string) bool {
	p := pve.ParseProperties("enabled", s)

	return p.On("enabled")
}
