// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package vm

import (
	"encoding/json"
	"fmt"
)

// Machine holds what the state remembers of a node's VM: what of it cannot be edited in place, and who the node
// is in its cluster.
type Machine struct {
	Hostname string   `json:"hostname"`
	VM       Identity `json:"vm"`
	// Protected is the setting that keeps the VM from being deleted; empty when none does.
	Protected string `json:"protected,omitempty"`
}

// UnmarshalJSON reads both forms that states have: earlier ones name the VM "machine", and know neither its
// disks nor the system on it.
func (m *Machine) UnmarshalJSON(text []byte) error {
	type plain Machine
	var stored struct {
		plain
		Earlier *Identity `json:"machine"`
	}
	if err := json.Unmarshal(text, &stored); err != nil {
		return fmt.Errorf("reading what the state remembers of a VM: %w", err)
	}
	*m = Machine(stored.plain)
	if stored.Earlier != nil {
		m.VM = *stored.Earlier
	}

	return nil
}
