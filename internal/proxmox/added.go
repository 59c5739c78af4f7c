// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package proxmox

import (
	"fmt"
	"slices"
	"strings"
)

// AddedDisks returns the slots of disks that the VM has and nobody wants there.
func (m Machine) AddedDisks(wanted []string) []string {
	return slices.DeleteFunc(slices.Clone(m.Disks), func(slot string) bool { return slices.Contains(wanted, slot) })
}

// TakeOut returns the commands that take disks out of a VM on its host. Their data stays, as unused disks.
func TakeOut(id int, slots []string) string {
	commands := make([]string, 0, len(slots))
	for _, slot := range slots {
		commands = append(commands, fmt.Sprintf("qm set %d --delete %s", id, slot))
	}

	return strings.Join(commands, "; ")
}
