// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package main

import (
	"fmt"

	"github.com/talos-proxmox/talos-proxmox/spec"
)

// describe returns a cluster of one schedulable control plane with Flux; what it leaves out gets its default.
// Credentials for Proxmox VE come from PROXMOX_VE_API_TOKEN. More nodes are more entries of Nodes.
func describe(name string, i int) spec.Config {
	lan := spec.Network{
		Bridge: spec.Ptr("vmbr0"), Address: spec.Ptr(fmt.Sprintf("10.77.0.%d/24", 11+i)), Gateway: spec.Ptr("10.77.0.1"),
	}

	return spec.Config{
		Proxmox: spec.Proxmox{
			Endpoint: spec.Ptr("https://host3.example.com:8006"),
			Hosts:    map[string]spec.Host{"host3": {Datastore: spec.Ptr("local-lvm")}},
		},
		Nodes: []spec.NamedNode{{Name: name + "-cp", Node: spec.Node{
			Role: spec.Ptr(spec.ControlPlane), Host: spec.Ptr("host3"), VMID: spec.Ptr(9100 + i),
			Networks: map[string]spec.Network{"lan": lan},
		}}},
		GitOps: spec.GitOps{
			Provider: spec.Ptr("flux"), Chart: spec.Chart{Version: spec.Ptr("2.18.2")},
			Git: spec.Git{URL: spec.Ptr("https://git.example.com/lab/demo.git")},
		},
	}
}
