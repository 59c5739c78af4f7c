// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package node

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/talos-proxmox/talos-proxmox/internal/vm"
)

// TestMachinesOfEarlierStates reads the form that states had before the VM's disks were in the record too. What
// it does not know refuses nothing.
func TestMachinesOfEarlierStates(t *testing.T) {
	t.Parallel()

	var was Machines
	require.NoError(t, json.Unmarshal([]byte(`{"cp-1": {"hostname": "one", "machine": {
		"address": "10.0.0.1", "host": "pve1", "migrate": true, "rebuild": 2, "role": "controlplane", "system": "", "vmId": 800}}}`), &was))
	id := vm.Identity{Address: "10.0.0.1", Host: "pve1", Migrate: true, Rebuild: 2, Role: "controlplane", VMID: 800}
	assert.Equal(t, Machines{"cp-1": {Hostname: "one", VM: id}}, was)

	now := id
	now.System, now.Disks = "nocloud amd64", map[string]vm.Disk{"scsi0": {Field: "osDisk", Size: 10}}
	require.NoError(t, Refuse(was, Machines{"cp-1": {Hostname: "one", VM: now}}, nil))
	now.VMID = 801
	require.ErrorContains(t, Refuse(was, Machines{"cp-1": {VM: now}}, nil), "vmId: was 800, is now 801")

	var again Machines
	text, err := json.Marshal(Machines{"cp-1": {Hostname: "one", VM: now, Protected: "cluster.protect"}})
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(text, &again))
	assert.Equal(t, Machines{"cp-1": {Hostname: "one", VM: now, Protected: "cluster.protect"}}, again)
}
