// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package talos

import (
	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"

	"github.com/talos-proxmox/talos-proxmox/components/internal/hook"
	"github.com/talos-proxmox/talos-proxmox/spec"
)

// Build holds what the steps that register a cluster share.
type Build struct {
	*Session

	// Config is complete, and has what GitOps adds to the manifests of day 0.
	Config spec.Config
	// Name begins the names of the cluster's resources.
	Name string
	// Parent is the cluster's component.
	Parent  pulumi.Resource
	Secrets *Secrets
	Checked *Checked
	// Machines are the nodes' machines by name; nil for machines that nobody here makes.
	Machines map[string]pulumi.Resource
	// MachineIDs change when a node's machine is another one, by node name.
	MachineIDs map[string]pulumi.StringInput

	// kubernetes is the cluster's version of Kubernetes, which is registered before all that touches a node.
	kubernetes *pulumi.Stash
	// permitted resolves when configurations may be applied.
	permitted pulumi.StringOutput
}

// Built holds the outputs of a registered cluster.
type Built struct {
	// Kubeconfig of an administrator, known once the cluster is ready.
	Kubeconfig pulumi.StringOutput
	// Endpoint is the URL of the Kubernetes API, known once nodes that go were retired.
	Endpoint pulumi.StringOutput
	// Ready is created once the cluster was found healthy.
	Ready pulumi.Resource
	// Start says when something may be installed in it.
	Start Start
}

// Start says when something may be installed in the cluster: in one that lives when all of it is healthy, in one that
// is made as soon as its Kubernetes API answers and one node takes pods, while others still join.
type Start struct {
	// Kubeconfig of an administrator, known when the API may answer.
	Kubeconfig pulumi.StringOutput
	// After is the option of what comes first in the cluster, and Await what its creation waits for.
	After pulumi.ResourceOption
	Await func(hook.Step) error
}
