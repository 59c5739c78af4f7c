// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package talos

import (
	"github.com/talos-proxmox/talos-proxmox/lab/talos/api"
	"github.com/talos-proxmox/talos-proxmox/lab/talos/node"
)

// New returns a site's nodes. The function that makes a VM's guest is [Nodes.Guest].
func New(o node.Options) *node.Nodes { return node.NewNodes(o, api.Server{}) }
