// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package adopt

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/talos-proxmox/talos-proxmox/internal/check"
	"github.com/talos-proxmox/talos-proxmox/internal/proxmox"
)

// preview returns what Pulumi prints of a stack with one VM; kind is the type of another resource beside it.
func preview(kind string) string {
	return `{"steps": [
		{"op": "create", "urn": "urn:pulumi:p::t::pulumi:providers:proxmoxve::proxmox", "newState": {"type": "pulumi:providers:proxmoxve",
			"inputs": {"endpoint": "https://pve", "apiToken": "[secret]", "version": "6.18.1"}}},
		{"op": "same", "urn": "urn:pulumi:p::t::x::known", "newState": {"type": "proxmoxve:VM/virtualMachine:VirtualMachine"}},
		{"op": "create", "urn": "urn:pulumi:p::t::x::other", "newState": {"type": "` + kind + `"}},
		{"op": "create", "urn": "urn:pulumi:p::t::c::blue", "newState": {"type": "talos-proxmox:components:Cluster",
			"parent": "urn:pulumi:p::t::pulumi:pulumi:Stack::p-t"}},
		{"op": "create", "urn": "urn:pulumi:p::t::n::blue-cp-1", "newState": {"type": "talos-proxmox:components:ProxmoxNode",
			"parent": "urn:pulumi:p::t::c::blue"}},
		{"op": "create", "urn": "urn:pulumi:p::t::pulumi:pulumi:Stack::p-t", "newState": {"type": "pulumi:pulumi:Stack"}},
		{"op": "create", "urn": "urn:pulumi:p::t::n$v::blue-cp-1-vm", "newState": {
			"type": "proxmoxve:VM/virtualMachine:VirtualMachine", "parent": "urn:pulumi:p::t::n::blue-cp-1",
			"inputs": {"name": "cp-1", "nodeName": "pve1", "vmId": 301, "__defaults": [],
				"networkDevices": [{"macAddress": "aa:bb:cc:00:00:01"}],
				"efiDisk": {"type": "4m", "fileFormat": "raw", "preEnrolledKeys": false},
				"disks": [{"interface": "scsi0", "speed": {"read": 0}}, {"interface": "scsi1", "speed": {"read": 9}}],
				"cdrom": {"interface": "ide0", "fileId": "` + unknown + `"}}}}]}`
}

func theMachine() proxmox.Machine {
	return proxmox.Machine{
		Name: "cp-1", Host: "pve1", MACs: []string{"AA:BB:CC:00:00:01"}, Disks: []string{"scsi0", "scsi1"},
		CDs: map[string]string{"ide0": "local:iso/talos.iso"}, EFIDisk: "4m raw",
	}
}

func TestAPreviewThatReplacesIsSeen(t *testing.T) {
	t.Parallel()
	text := `{"steps": [{"op": "update", "urn": "urn:pulumi:p::t::n$` + machineType + `::a-vm"},
		{"op": "delete-replaced", "urn": "urn:pulumi:p::t::n$` + machineType + `::b-vm"},
		{"op": "create-replacement", "urn": "urn:pulumi:p::t::n$` + machineType + `::b-vm"},
		{"op": "delete", "urn": "urn:pulumi:p::t::x::other"}]}`
	replaced, err := readReplaced([]byte(text))
	require.NoError(t, err)
	assert.Equal(t, []string{"urn:pulumi:p::t::n$" + machineType + "::b-vm"}, replaced)
}

func TestOnlyTheStacksOwnMachinesAreAdopted(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		edit func(*proxmox.Machine)
		want string
	}{
		"its own":      {edit: func(*proxmox.Machine) {}},
		"another host": {func(m *proxmox.Machine) { m.Host = "pve2" }, "nodes.cp-1.host: VM 301 is on host pve2, not pve1: write that host"},
		"another VM": {func(m *proxmox.Machine) { m.Name = "db" },
			`nodes.cp-1.vmId: VM 301 is named "db", not "cp-1": give the node's own VM, or rename that VM`},
		"another card": {func(m *proxmox.Machine) { m.MACs = []string{"AA:BB:CC:00:00:02"} },
			"nodes.cp-1.networks: VM 301 has the MAC addresses [AA:BB:CC:00:00:02], not [AA:BB:CC:00:00:01]: write each as its network's mac"},
		"another disk": {func(m *proxmox.Machine) { m.Disks = []string{"scsi0"} },
			"nodes.cp-1.disks: VM 301 has the disks [scsi0], not [scsi0 scsi1]: write what is there"},
		"other UEFI variables": {func(m *proxmox.Machine) { m.EFIDisk = "4m raw with keys" },
			"nodes.cp-1.efiDisk: VM 301 has the EFI disk 4m raw with keys, not the EFI disk 4m raw: write what is there"},
		"no UEFI": {func(m *proxmox.Machine) { m.EFIDisk = "" }, "nodes.cp-1.efiDisk: VM 301 has no EFI disk, not the EFI disk 4m raw"},
		"a TPM":   {func(m *proxmox.Machine) { m.TPM = "v2.0" }, "nodes.cp-1.tpm: VM 301 has the TPM v2.0, not no TPM: write what is there"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p, err := readPlan([]byte(preview("x")))
			require.NoError(t, err)
			require.Len(t, p.machines, 1, "what the state knows, or what is no VM, is left alone")
			is := theMachine()
			c.edit(&is)
			var problems check.List
			p.machines[0].compare(is, &problems)
			if c.want == "" {
				assert.NoError(t, problems.Err("x"))
			} else {
				assert.ErrorContains(t, problems.Err("x"), c.want)
			}
		})
	}
}

func TestWhatOnlyAnUpKnowsCannotBeAdopted(t *testing.T) {
	t.Parallel()
	p, err := readPlan([]byte(strings.Replace(preview("x"), `"interface": "scsi1"`, `"interface": "scsi1", "pathInDatastore": "`+unknown+`"`, 1)))
	require.NoError(t, err)
	var problems check.List
	p.machines[0].compare(theMachine(), &problems)
	assert.ErrorContains(t, problems.Err("x"),
		"nodes.cp-1: disks[1].pathInDatastore of VM 301 is known only once up has run: such a node cannot be adopted")
}

func TestNewSecretsAdoptNothing(t *testing.T) {
	t.Parallel()
	_, err := readPlan([]byte(preview(secretsType)))
	assert.EqualError(t, err, "the stack would make new secrets, which give no access to the running cluster: "+
		"set cluster.adopted and cluster.secretsBundle")
}

func TestTheStateGetsWhatTheStackSays(t *testing.T) {
	t.Parallel()
	p, err := readPlan([]byte(preview("x")))
	require.NoError(t, err)
	var problems check.List
	p.machines[0].compare(theMachine(), &problems)
	require.NoError(t, problems.Err("x"))

	text, err := json.Marshal(importFile(p, p.machines))
	require.NoError(t, err)
	assert.JSONEq(t, `{"nameTable": {}, "resources": [
		{"type": "pulumi:providers:proxmoxve", "name": "provider", "logicalName": "proxmox", "version": "6.18.1", "inputs": {
			"endpoint": "https://pve", "version": "6.18.1"}},
		{"type": "talos-proxmox:components:Cluster", "name": "Cluster-blue", "logicalName": "blue", "component": true},
		{"type": "talos-proxmox:components:ProxmoxNode", "name": "ProxmoxNode-blue-cp-1", "logicalName": "blue-cp-1",
			"parent": "Cluster-blue", "component": true},
		{"type": "proxmoxve:VM/virtualMachine:VirtualMachine", "name": "blue-cp-1-vm", "logicalName": "blue-cp-1-vm",
			"id": "301", "parent": "ProxmoxNode-blue-cp-1", "provider": "provider",
			"inputs": {"name": "cp-1", "nodeName": "pve1", "vmId": 301, "__defaults": [],
				"networkDevices": [{"macAddress": "aa:bb:cc:00:00:01"}],
				"efiDisk": {"type": "4m", "fileFormat": "raw", "preEnrolledKeys": false},
				"disks": [{"interface": "scsi0"}, {"interface": "scsi1", "speed": {"read": 9}}],
				"cdrom": {"interface": "ide0", "fileId": "local:iso/talos.iso"}},
			"outputs": {"name": "cp-1", "nodeName": "pve1", "vmId": 301,
				"networkDevices": [{"macAddress": "aa:bb:cc:00:00:01"}],
				"efiDisk": {"type": "4m", "fileFormat": "raw", "preEnrolledKeys": false},
				"disks": [{"interface": "scsi0"}, {"interface": "scsi1", "speed": {"read": 9}}],
				"cdrom": {"interface": "ide0", "fileId": "local:iso/talos.iso"}}}]}`, string(text))

	p.provider.known = true
	again := importFile(p, nil)
	assert.Equal(t, map[string]string{"provider": p.provider.urn}, again["nameTable"])
	assert.Empty(t, again["resources"])
}

func TestTheAPIIsAskedAsTheStackSays(t *testing.T) {
	for _, name := range []string{"ENDPOINT", "API_TOKEN", "USERNAME", "PASSWORD"} {
		t.Setenv("PROXMOX_VE_"+name, "")
	}
	access, err := readAccess(`{"endpoint": "https://pve", "apiToken": "t=1", "insecure": true}`)
	require.NoError(t, err)
	assert.Equal(t, proxmox.Access{Endpoint: "https://pve", Token: "t=1", Insecure: true}, access)
	assert.Equal(t, []string{"PROXMOX_VE_API_TOKEN=t=1"}, engine{}.with(access).cli.Env)

	t.Setenv("PROXMOX_VE_ENDPOINT", "https://other")
	t.Setenv("PROXMOX_VE_PASSWORD", "p")
	t.Setenv("PROXMOX_VE_USERNAME", "u@pam")
	access, err = readAccess("")
	require.NoError(t, err)
	assert.Equal(t, proxmox.Access{Endpoint: "https://other", Username: "u@pam", Password: "p"}, access)

	_, err = readAccess("hush")
	assert.EqualError(t, err, "reading the stack's configuration: proxmox is no block")
}
