// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package vms

import (
	"fmt"
	"slices"
	"strings"

	"github.com/talos-proxmox/talos-proxmox/internal/check"
	"github.com/talos-proxmox/talos-proxmox/spec"
)

// bootOrder holds the order against the devices that the machine has, and against what Talos bears: it
// halts where it is installed and runs from the ISO, and a new machine has nothing else to boot from.
func (r *rules) bootOrder(at string, n spec.NamedNode) {
	if n.BootOrder == nil {
		return
	}
	at += ".bootOrder"
	if len(n.BootOrder) == 0 {
		r.Addf(at, "is empty: name the devices that the machine boots from, or remove it")

		return
	}
	disk := n.OSDisk.Interface()
	devices := []string{disk}
	for _, d := range n.DataDisks() {
		devices = append(devices, d.Interface())
	}
	fromISO := spec.Value(r.Config.Image(n).Boot) == "iso"
	if fromISO {
		devices = append(devices, spec.CDInterface)
	}
	for i := range n.Devices() {
		devices = append(devices, fmt.Sprintf("net%d", i))
	}
	for i, name := range n.BootOrder {
		if !slices.Contains(devices, name) {
			r.Addf(check.Index(at, i), "the machine has no device %q: name one of %s", name, strings.Join(devices, ", "))
		} else if slices.Index(n.BootOrder, name) != i {
			r.Addf(check.Index(at, i), "%s is listed twice: name it once", name)
		}
	}
	osDisk, cd := slices.Index(n.BootOrder, disk), slices.Index(n.BootOrder, spec.CDInterface)
	switch {
	case osDisk < 0:
		if !r.Wrong(at) { // else it may be one that is misspelt
			r.Addf(at, "lacks %s, on which Talos is installed: add it", disk)
		}
	case fromISO && cd < 0:
		r.Addf(at, "lacks %s, from which a new machine boots the ISO: add it behind %s", spec.CDInterface, disk)
	case fromISO && cd < osDisk:
		r.Addf(at, "has %s before %s, and an installed Talos that boots from the ISO halts: put %s first", spec.CDInterface, disk, disk)
	}
}
