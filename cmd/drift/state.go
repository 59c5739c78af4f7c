// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/talos-proxmox/talos-proxmox/components"
	"github.com/talos-proxmox/talos-proxmox/internal/cluster"
	"github.com/talos-proxmox/talos-proxmox/internal/health"
)

// clusterState holds what a state records of a cluster.
type clusterState struct {
	cluster.Cluster

	talosconfig string
	nodes       []health.Expected
}

// resource decodes a resource of a state.
type resource struct {
	URN     string         `json:"urn"`
	Type    string         `json:"type"`
	Delete  bool           `json:"delete"`
	Inputs  map[string]any `json:"inputs"`
	Outputs map[string]any `json:"outputs"`
}

const (
	stashType = "pulumi:index:Stash"
	applyType = "talos:machine/configurationApply:ConfigurationApply"
)

// readState finds the clusters of an exported state, in the order of their names.
func readState(exported []byte) ([]clusterState, error) {
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
	var found []clusterState
	for _, key := range slices.Sorted(maps.Keys(at)) {
		name, ok := strings.CutPrefix(key, components.TalosClusterType+"::")
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
func readCluster(name string, at map[string]resource) (clusterState, error) {
	c := clusterState{Cluster: cluster.Cluster{Name: name}}
	c.talosconfig, _ = plain(at[components.TalosClusterType+"::"+name].Outputs["talosconfig"]).(string)
	if c.talosconfig == "" {
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
		c.nodes = append(c.nodes, health.Expected{
			Member: m, Image: cluster.Image{Version: text(version, "talos"), Schematic: text(version, "schematic")},
			Configuration: []byte(config), Kubernetes: kubernetes,
		})
	}

	return c, nil
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
