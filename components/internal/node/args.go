// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package node

import (
	"context"

	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"

	"github.com/talos-proxmox/talos-proxmox/components/internal/hook"
	"github.com/talos-proxmox/talos-proxmox/components/internal/vmargs"
	"github.com/talos-proxmox/talos-proxmox/spec"
)

// Args say how the VM of a node is registered.
type Args struct {
	vmargs.Node

	// Parent is the component of the node.
	Parent pulumi.Resource
	// Name is the component's name, which the names of its resources begin with.
	Name string
	// Record remembers the VM.
	Record *Record
	// Lifecycle says which edits may replace the VM.
	Lifecycle spec.Lifecycle
	// API is how Proxmox VE is asked for what an interrupted run left behind.
	API API
	// Serves reports whether a living node of the cluster answers at an address; nil where nobody can tell.
	Serves func(ctx context.Context, address string) bool
	// Given are the caller's options for the VM, as far as they say what comes before it and which hooks
	// run around its steps.
	DependsOn []pulumi.Resource
	Hooks     *pulumi.ResourceHookBinding
}

// API holds the address and credentials of Proxmox VE for the calls that its provider does not make.
type API struct {
	Settings spec.Proxmox
	// Token and Password are credentials that become known during the run; nil where the settings have them.
	Token, Password *hook.Future[string]
}
