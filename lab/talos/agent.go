// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package talos

import (
	"slices"

	"github.com/talos-proxmox/talos-proxmox/lab/site/guest"
)

// startAgent runs the guest agent where the image has it and the VM offers its port.
func (n *node) startAgent() {
	if !slices.ContainsFunc(n.image.Extensions, func(e string) bool {
		return e == "qemu-guest-agent" || e == "siderolabs/qemu-guest-agent"
	}) {
		return
	}
	if !n.m.AgentEnabled {
		n.services.set("ext-qemu-guest-agent", stateWaiting,
			"Waiting for file \"/dev/virtio-ports/org.qemu.guest_agent.0\" to exist", false)

		return
	}

	n.services.set("ext-qemu-guest-agent", stateRunning, "Started task ext-qemu-guest-agent", true)
	if n.m.SetAgent != nil {
		n.m.SetAgent(n.interfaces)
	}
}

func (n *node) interfaces() []guest.Interface {
	out := []guest.Interface{{Name: "lo", MAC: "00:00:00:00:00:00", Addresses: parsePrefixes([]string{"127.0.0.1/8"})}}
	for i, l := range n.links {
		iface := guest.Interface{Name: l.name, MAC: l.mac}
		if i == 0 {
			iface.Addresses = n.book.addresses()
		}
		out = append(out, iface)
	}

	return out
}
