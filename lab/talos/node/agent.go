// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package node

import (
	"slices"

	"github.com/talos-proxmox/talos-proxmox/lab/site/guest"
	"github.com/talos-proxmox/talos-proxmox/lab/talos/events"
	"github.com/talos-proxmox/talos-proxmox/lab/talos/nodenet"
)

// startAgent runs the guest agent where the image has it and the VM offers its port.
func (n *Node) startAgent() {
	if !slices.ContainsFunc(n.Image.Extensions, func(e string) bool {
		return e == "qemu-guest-agent" || e == "siderolabs/qemu-guest-agent"
	}) {
		return
	}
	if !n.VM.AgentEnabled {
		n.Services.Set("ext-qemu-guest-agent", events.StateWaiting,
			"Waiting for file \"/dev/virtio-ports/org.qemu.guest_agent.0\" to exist", false)

		return
	}

	n.Services.Set("ext-qemu-guest-agent", events.StateRunning, "Started task ext-qemu-guest-agent", true)
	if n.VM.SetAgent != nil {
		n.VM.SetAgent(n.interfaces)
	}
}

func (n *Node) interfaces() []guest.Interface {
	out := []guest.Interface{{Name: "lo", MAC: "00:00:00:00:00:00", Addresses: nodenet.ParsePrefixes([]string{"127.0.0.1/8"})}}
	for i, l := range n.links {
		iface := guest.Interface{Name: l.Name, MAC: l.MAC}
		if i == 0 {
			iface.Addresses = n.Book.Addresses()
		}
		out = append(out, iface)
	}

	return out
}
