// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package site

// AgentInterfaces is what a VM's guest agent reports.
func (c *Cluster) AgentInterfaces(host string, id int) ([]Interface, error) {
	c.s.mu.Lock()
	v, err := c.find(host, id)
	if err != nil {
		c.s.mu.Unlock()

		return nil, err
	}
	p := c.s.running[vmKey{c.c.Name, id}]
	enabled := agentEnabled(v.Config["agent"])
	var report func() []Interface
	if p != nil {
		report = p.agent
	}
	c.s.mu.Unlock()

	switch {
	case p == nil:
		return nil, dief("VM %d is not running", id)
	case !enabled:
		return nil, dief("No QEMU guest agent configured")
	case report == nil:
		return nil, dief("QEMU guest agent is not running")
	}

	return report(), nil
}

func agentEnabled(s string) bool {
	p := parseProps("enabled", s)

	return p.is("enabled")
}
