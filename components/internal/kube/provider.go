// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package kube

import (
	"fmt"

	"github.com/pulumi/pulumi-kubernetes/sdk/v4/go/kubernetes"
	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"

	"github.com/talos-proxmox/talos-proxmox/internal/versions"
)

// ProviderVersion is the version of the kubernetes plugin that everything here was made for.
const ProviderVersion = versions.KubernetesPlugin

// NewProvider registers a provider for a cluster that this program makes. The kubeconfig is kept secret; pass
// one that becomes known when the API is up, since the plugin asks the API once and takes it for unreachable
// for the rest of the run. The cluster's name identifies the cluster: what is in it is not replaced when its
// kubeconfig changes.
//
// The provider's deleteUnreachable stays off: with it a refresh while the API is silent takes all that is in
// the cluster out of the state. A destroy needs it not, since what is in the cluster goes with the cluster.
func NewProvider(
	ctx *pulumi.Context, name, clusterName string, kubeconfig pulumi.StringInput, opts ...pulumi.ResourceOption,
) (*kubernetes.Provider, error) {
	opts = append(opts, pulumi.Version(ProviderVersion),
		pulumi.AdditionalSecretOutputs([]string{"kubeconfig"}))
	provider, err := kubernetes.NewProvider(ctx, name, &kubernetes.ProviderArgs{
		ClusterIdentifier: pulumi.String(clusterName),
		Kubeconfig:        Secret(kubeconfig).ToStringPtrOutput(),
	}, opts...)
	if err != nil {
		return nil, fmt.Errorf("registering the Kubernetes provider %q: %w", name, err)
	}

	return provider, nil
}

// Secret marks a text as secret.
func Secret(text pulumi.StringInput) pulumi.StringOutput {
	return pulumi.ToSecret(text.ToStringOutput()).(pulumi.StringOutput)
}
