// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

// Package state reads the clusters of a stack out of its exported state.
package state

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/talos-proxmox/talos-proxmox/internal/cluster"
	"github.com/talos-proxmox/talos-proxmox/internal/health"
	"github.com/talos-proxmox/talos-proxmox/internal/proxmox"
)

// Cluster holds what a state says of a cluster.
type Cluster struct {
	cluster.Cluster

	// Talosconfig and Kubeconfig are an administrator's. Secret.
	Talosconfig, Kubeconfig string
	// Nodes says what the nodes are supposed to be.
	Nodes []health.Expected
	// Machines are their VMs, by node; those that the state does not tell of are left out.
	Machines map[string]Machine
	// Proxmox is how Proxmox VE is reached, as far as the state says it. Secret.
	Proxmox proxmox.Access
}

// Machine holds what a state says of a node's VM.
type Machine struct {
	ID int
	// Disks are the slots of its disks: "scsi0".
	Disks []string
}

// ClusterType is the type of the component that a cluster is.
const ClusterType = "talos-proxmox:components:TalosCluster"

// resource decodes a resource of a stack's state.
type resource struct {
	URN      string         `json:"urn"`
	Type     string         `json:"type"`
	Delete   bool           `json:"delete"`
	Provider string         `json:"provider"`
	Inputs   map[string]any `json:"inputs"`
	Outputs  map[string]any `json:"outputs"`
}

const (
	stashType    = "pulumi:index:Stash"
	applyType    = "talos:machine/configurationApply:ConfigurationApply"
	machineType  = "proxmoxve:VM/virtualMachine:VirtualMachine"
	providerType = "pulumi:providers:proxmoxve"
)

// Read returns the clusters of an exported state, in the order of their names.
func Read(exported []byte) ([]Cluster, error) {
	var state struct {
		Deployment struct {
			Resources []resource `json:"resources"`
		} `json:"deployment"`
	}
	if err := json.Unmarshal(exported, &state); err != nil {
		return nil, fmt.Errorf("reading the state: %w", err)
	}
	at := map[string]resource{}
	for _, r := range state.Deployment.Resources {
		if !r.Delete {
			at[r.Type+"::"+r.URN[strings.LastIndex(r.URN, "::")+2:]] = r
		}
	}
	var found []Cluster
	for _, key := range slices.Sorted(maps.Keys(at)) {
		name, ok := strings.CutPrefix(key, ClusterType+"::")
		if !ok {
			continue
		}
		c, err := readCluster(name, at)
		if err != nil {
			return nil, fmt.Errorf("cluster %q: %w", name, err)
		}
		found = append(found, c)
	}
	if len(found) == 0 {
		return nil, errors.New("the state has no cluster: was the stack ever up?")
	}

	return found, nil
}

// readCluster finds what belongs to one cluster: its components name their resources after it.
func readCluster(name string, at map[string]resource) (Cluster, error) {
	c := Cluster{Cluster: cluster.Cluster{Name: name}}
	c.Talosconfig, _ = plain(at[ClusterType+"::"+name].Outputs["talosconfig"]).(string)
	c.Kubeconfig, _ = plain(at[ClusterType+"::"+name].Outputs["kubeconfig"]).(string)
	if c.Talosconfig == "" {
		return c, errors.New("the state has no talosconfig: no up has ended well yet")
	}
	kubernetes := text(at[stashType+"::"+name+"-kubernetes"].Inputs, "kubernetes")
	members, _ := plain(at[stashType+"::"+name+"-members"].Inputs["input"]).(map[string]any)
	for _, node := range slices.Sorted(maps.Keys(members)) {
		said, _ := members[node].(map[string]any)
		word := func(field string) string { s, _ := said[field].(string); return s }
		m := cluster.Member{
			Name: node, Hostname: word("hostname"), Address: word("address"), ControlPlane: word("role") == "controlplane",
		}
		c.Members = append(c.Members, m)
		version := at[stashType+"::"+name+"-"+node+"-version"].Inputs
		config, ok := plain(at[applyType+"::"+name+"-"+node].Inputs["machineConfigurationInput"]).(string)
		if !ok {
			return c, fmt.Errorf("the state has no configuration of node %q in plain: export it with --show-secrets", node)
		}
		c.Nodes = append(c.Nodes, health.Expected{
			Member: m, Image: cluster.Image{Version: text(version, "talos"), Schematic: text(version, "schematic")},
			Configuration: []byte(config), Kubernetes: kubernetes,
		})
	}
	c.Machines, c.Proxmox = readMachines(name, c.Members, at)

	return c, nil
}

// readMachines returns the VMs of a cluster's nodes as its record of them has them, which a refresh does not change, and how
// their provider reaches Proxmox VE.
func readMachines(name string, members []cluster.Member, at map[string]resource) (map[string]Machine, proxmox.Access) {
	machines, access := map[string]Machine{}, proxmox.Access{}
	record, _ := plain(at[stashType+"::"+name+"-machines"].Inputs["input"]).(map[string]any)
	for _, m := range members {
		entry, _ := record[m.Name].(map[string]any)
		identity, _ := entry["vm"].(map[string]any)
		id, _ := identity["vmId"].(float64)
		disks, _ := identity["disks"].(map[string]any)
		if id == 0 || len(disks) == 0 {
			continue
		}
		machines[m.Name] = Machine{ID: int(id), Disks: slices.Sorted(maps.Keys(disks))}
		provider := at[machineType+"::"+name+"-"+m.Name+"-vm"].Provider
		if end := strings.LastIndex(provider, "::"); end > 0 { // behind it is the provider's id
			provider = provider[:end]
		}
		access = readAccess(at[providerType+"::"+provider[strings.LastIndex(provider, "::")+2:]].Inputs)
	}

	return machines, access
}

// readAccess reads the inputs of a provider, whose values that are no text the engine keeps as text.
func readAccess(inputs map[string]any) proxmox.Access {
	word := func(key string) string { s, _ := plain(inputs[key]).(string); return s }

	return proxmox.Access{
		Endpoint: word("endpoint"), Token: word("apiToken"), Username: word("username"), Password: word("password"),
		Insecure: word("insecure") == "true" || inputs["insecure"] == true,
	}
}

// text returns a text in a Stash's input.
func text(inputs map[string]any, key string) string {
	input, _ := plain(inputs["input"]).(map[string]any)
	said, _ := input[key].(string)

	return said
}

// secretMark is the key by which Pulumi marks special values in a state, and the value that says "secret".
const (
	secretMark = "4dabf18193072939515e22adb298388d"
	secretSig  = "1b47061264138c4ac30d75fd1eb44270"
)

// plain returns a value of a state without the marks of secrets.
func plain(v any) any {
	switch v := v.(type) {
	case map[string]any:
		if v[secretMark] == secretSig {
			var inner any
			if plaintext, ok := v["plaintext"].(string); !ok || json.Unmarshal([]byte(plaintext), &inner) != nil {
				return nil
			}

			return plain(inner)
		}
		out := make(map[string]any, len(v))
		for key, element := range v {
			out[key] = plain(element)
		}

		return out
	case []any:
		out := make([]any, 0, len(v))
		for _, element := range v {
			out = append(out, plain(element))
		}

		return out
	default:
		return v
	}
}
