// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package controller

import (
	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"

	"github.com/talos-proxmox/talos-proxmox/internal/manifests"
	"github.com/talos-proxmox/talos-proxmox/spec"
)

// Args say which controller is registered, and how.
type Args struct {
	// Token, Name and Component are those of the component that the controller's resources belong to.
	Token, Name string
	Component   pulumi.ComponentResource
	// Provider is the controller, as settings name it.
	Provider    string
	ClusterName string
	Kubeconfig  pulumi.StringInput
	// Cluster is the cluster's resource, nil when it is not the program's.
	Cluster     pulumi.Resource
	Settings    spec.GitOps
	Charts      manifests.Cache
	Credentials Credentials
}

// builder registers the children of one component.
type builder struct {
	ctx               *pulumi.Context
	name, clusterName string
	g                 spec.GitOps
	charts            manifests.Cache
	credentials       Credentials
	kubeconfig        pulumi.StringInput
	values            map[string]any
	// first is what the caller wants to come first.
	first []pulumi.Resource
	into  []pulumi.ResourceOption
	// outside are the options of what does not go with the cluster.
	outside []pulumi.ResourceOption
}

// after returns the options of a child that comes after others.
func (b *builder) after(before ...pulumi.Resource) []pulumi.ResourceOption {
	return append(b.into[:len(b.into):len(b.into)], pulumi.DependsOn(before))
}

// retained returns the options of a child that comes after others and stays in the cluster when it is removed
// from the stack.
func (b *builder) retained(before ...pulumi.Resource) []pulumi.ResourceOption {
	return append(b.after(before...), pulumi.RetainOnDelete(true))
}
