// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package manifests

import (
	"context"

	"github.com/talos-proxmox/talos-proxmox/spec"
)

// runtimeClasses returns those that GPUs need: NVIDIA's container runtime has a name of its own.
func (in Input) runtimeClasses(context.Context) ([]part, error) {
	for _, n := range in.Config.Nodes {
		if n.GPU != nil && spec.Value(n.GPU.Vendor) == "nvidia" {
			return []part{{name: "runtime-class-nvidia", contents: mustYAML(object{
				"apiVersion": "node.k8s.io/v1", "kind": "RuntimeClass", "metadata": object{"name": "nvidia"}, "handler": "nvidia",
			})}}, nil
		}
	}

	return nil, nil
}
