// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package vmargs

import (
	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"

	"github.com/talos-proxmox/talos-proxmox/spec"
)

// Node holds what the VM of a node is made from. Cluster, node and image are complete: defaults are filled in.
type Node struct {
	Cluster spec.Cluster
	Node    spec.NamedNode
	Image   spec.Image
	// BootFile is the image's file on the node's host.
	BootFile pulumi.StringInput
}
