// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package main

import (
	"encoding/json"
	"os"

	"github.com/talos-proxmox/talos-proxmox/spec"
)

// describe takes the place of the example's function of that name: the nodes stand in a file that a test edits.
func describe(name string, _ int) spec.Config {
	var nodes []spec.NamedNode
	text, err := os.ReadFile(name + ".json")
	if err == nil {
		err = json.Unmarshal(text, &nodes)
	}
	if err != nil {
		panic(err)
	}

	return spec.Config{
		Proxmox: spec.Proxmox{
			Endpoint: spec.Ptr("https://host3.example.com:8006"),
			Hosts:    map[string]spec.Host{"host3": {}, "host4": {}},
		},
		Cluster: spec.Cluster{AllowSchedulingOnControlPlanes: spec.Ptr(true)},
		Nodes:   nodes,
	}
}
