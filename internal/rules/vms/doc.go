// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

// Package vms holds the rules about virtual machines, their hosts and the images they boot.
package vms

import (
	"github.com/talos-proxmox/talos-proxmox/internal/check"
	"github.com/talos-proxmox/talos-proxmox/internal/rules/scope"
	"github.com/talos-proxmox/talos-proxmox/spec"
)

// rules look at one configuration.
type rules struct{ *scope.Scope }

// Check records what is wrong with the way to Proxmox VE, with its hosts and with the images.
func Check(s *scope.Scope) {
	r := &rules{s}
	r.proxmox()
	for _, name := range scope.SortedKeys(r.Config.Images) {
		r.BlockName(check.Key("images", name), name)
		r.image(check.Key("images", name), r.Config.Images[name])
	}
	r.firmwares()
	r.hosts()
	r.openNodes()
}

// CheckProxmox records what is wrong with the way to Proxmox VE and with its hosts, for a caller that has no nodes.
func CheckProxmox(s *scope.Scope) { (&rules{s}).proxmox() }

// CheckFirmware records nodes whose firmware does not boot their image.
func CheckFirmware(s *scope.Scope) { (&rules{s}).firmwares() }

// CheckNode records what is wrong with a node's virtual machine, and with what the node is called.
func CheckNode(s *scope.Scope, n spec.NamedNode) { (&rules{s}).node(n) }
