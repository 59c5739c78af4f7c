// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package state

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/talos-proxmox/talos-proxmox/components"
	"github.com/talos-proxmox/talos-proxmox/internal/cluster"
	"github.com/talos-proxmox/talos-proxmox/internal/health"
	"github.com/talos-proxmox/talos-proxmox/internal/proxmox"
)

// secret returns a secret as Pulumi exports it with --show-secrets.
func secret(t *testing.T, v any) map[string]any {
	t.Helper()
	text, err := json.Marshal(v)
	require.NoError(t, err)

	return map[string]any{secretMark: secretSig, "plaintext": string(text)}
}

func exported(t *testing.T, configuration any) []byte {
	t.Helper()
	const parent = "urn:pulumi:dev::p::talos-proxmox:components:TalosCluster$"
	resources := []map[string]any{
		{
			"urn":  "urn:pulumi:dev::p::talos-proxmox:components:TalosCluster::blue",
			"type": "talos-proxmox:components:TalosCluster", "outputs": map[string]any{"talosconfig": secret(t, "the talosconfig")},
		},
		{"urn": parent + "pulumi:index:Stash::blue-members", "type": stashType, "inputs": map[string]any{"input": map[string]any{
			"ctrl-00": map[string]any{"address": "10.0.0.1", "hostname": "zero", "role": "controlplane"},
		}}},
		{"urn": parent + "pulumi:index:Stash::blue-kubernetes", "type": stashType, "inputs": map[string]any{
			"input": map[string]any{"kubernetes": "v1.35.0", "edit": "1"},
		}},
		{"urn": parent + "pulumi:index:Stash::blue-ctrl-00-version", "type": stashType, "inputs": map[string]any{
			"input": map[string]any{"talos": "v1.12.4", "schematic": "abc"},
		}},
		{"urn": parent + "pulumi:index:Stash::blue-ctrl-00-version", "type": stashType, "delete": true, "inputs": map[string]any{
			"input": map[string]any{"talos": "v1.12.3", "schematic": "abc"},
		}},
		{"urn": parent + "pulumi:index:Stash::blue-machines", "type": stashType, "inputs": map[string]any{"input": map[string]any{
			"ctrl-00": map[string]any{"hostname": "zero", "vm": map[string]any{"vmId": 800, "disks": map[string]any{
				"scsi1": map[string]any{"size": 20}, "scsi0": map[string]any{"size": 10},
			}}},
		}}},
		{
			"urn": "urn:pulumi:dev::p::pulumi:providers:proxmoxve::blue-proxmox", "type": "pulumi:providers:proxmoxve",
			"inputs": map[string]any{"endpoint": "https://pve:8006", "apiToken": secret(t, "a@pve!b=c"), "insecure": "true"},
		},
		{
			"urn": parent + machineType + "::blue-ctrl-00-vm", "type": machineType,
			"provider": "urn:pulumi:dev::p::pulumi:providers:proxmoxve::blue-proxmox::0123-4567",
		},
		{"urn": parent + applyType + "::blue-ctrl-00", "type": applyType, "inputs": map[string]any{"machineConfigurationInput": configuration}},
	}
	text, err := json.Marshal(map[string]any{"deployment": map[string]any{"resources": resources}})
	require.NoError(t, err)

	return text
}

func TestReadState(t *testing.T) {
	t.Parallel()

	clusters, err := Read(exported(t, secret(t, "machine: {}")))
	require.NoError(t, err)

	node := cluster.Member{Name: "ctrl-00", Hostname: "zero", Address: "10.0.0.1", ControlPlane: true}
	assert.Equal(t, []Cluster{{
		Cluster: cluster.Cluster{Name: "blue", Members: []cluster.Member{node}}, Talosconfig: "the talosconfig",
		Nodes: []health.Expected{{
			Member: node, Image: cluster.Image{Version: "v1.12.4", Schematic: "abc"},
			Configuration: []byte("machine: {}"), Kubernetes: "v1.35.0",
		}},
		Machines: map[string]Machine{"ctrl-00": {ID: 800, Disks: []string{"scsi0", "scsi1"}}},
		Proxmox:  proxmox.Access{Endpoint: "https://pve:8006", Token: "a@pve!b=c", Insecure: true},
	}}, clusters)
}

func TestReadStateThatTellsTooLittle(t *testing.T) {
	t.Parallel()

	_, err := Read([]byte(`{"deployment": {}}`))
	require.EqualError(t, err, "the state has no cluster: was the stack ever up?")
	_, err = Read(exported(t, map[string]any{secretMark: secretSig, "ciphertext": "v1:abc"}))
	require.EqualError(t, err, `cluster "blue": the state has no configuration of node "ctrl-00" in plain: export it with --show-secrets`)
}

func TestClustersAreFoundByTheComponentsType(t *testing.T) {
	t.Parallel()
	assert.Equal(t, components.TalosClusterType, ClusterType)
}
