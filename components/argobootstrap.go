// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package components

import (
	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"

	"github.com/talos-proxmox/talos-proxmox/components/internal/controller"
	"github.com/talos-proxmox/talos-proxmox/internal/gitops"
	"github.com/talos-proxmox/talos-proxmox/spec"
)

// ArgoBootstrapType is the token of [ArgoBootstrap].
const ArgoBootstrapType = "talos-proxmox:components:ArgoBootstrap"

// ArgoBootstrapArgs say how Argo CD is installed and what it follows.
type ArgoBootstrapArgs struct {
	// ClusterName is the cluster's name; it identifies the cluster to the Kubernetes provider, and the
	// Application bears it.
	ClusterName string
	// Kubeconfig of an administrator, known only when the cluster is ready. Secret.
	Kubeconfig pulumi.StringInput `pulumi:"kubeconfig"`
	// Cluster is the cluster's resource: when it is deleted, what is inside goes with it, without a
	// word to its API.
	Cluster pulumi.Resource
	// GitOps says what to install and which repository to follow; what is left out gets its default,
	// and what only Flux has is refused.
	GitOps spec.GitOps
	// GitPassword is the token or password, and GitPrivateKey the SSH key, that the repository is read with, for
	// credentials that other resources produce; they take the place of those in GitOps.Git.Auth.
	GitPassword   pulumi.StringInput `pulumi:"gitPassword"`
	GitPrivateKey pulumi.StringInput `pulumi:"gitPrivateKey"`
	// RegistrationToken lets the deploy key be registered, in place of that in GitOps.Git.Auth.Register.
	RegistrationToken pulumi.StringInput `pulumi:"registrationToken"`
	// Charts keeps the chart's archive ([ProjectCharts]), so that a plan needs no network. Without it the
	// Kubernetes provider asks the repository at every plan, and checks no digest.
	Charts ChartCache
}

// ArgoBootstrap installs Argo CD in a cluster and has it follow a repository. It never writes to git. Nothing waits
// for the repository: an unreachable git host does not hold up a run, Argo CD goes on trying.
type ArgoBootstrap struct {
	pulumi.ResourceState

	// PublicKey is the deploy key to allow read access to, in the form of ~/.ssh/authorized_keys;
	// empty without an SSH key.
	PublicKey pulumi.StringOutput `pulumi:"publicKey"`
}

// NewArgoBootstrap registers Argo CD by its chart, the credentials of the repository and the
// Application that follows it. With DayZero Talos has installed the first and the last (see
// [AddGitOpsDayZero]), and only the credentials are registered here.
func NewArgoBootstrap(
	ctx *pulumi.Context, name string, args *ArgoBootstrapArgs, opts ...pulumi.ResourceOption,
) (*ArgoBootstrap, error) {
	if args == nil {
		return nil, errNoArgs("GitOps", name)
	}
	a := &ArgoBootstrap{}
	installed, err := controller.Install(ctx, controller.Args{
		Token: ArgoBootstrapType, Name: name, Component: a, Provider: gitops.ArgoCD, ClusterName: args.ClusterName,
		Kubeconfig: args.Kubeconfig, Cluster: args.Cluster, Settings: args.GitOps, Charts: args.Charts.cache,
		Credentials: controller.Credentials{
			Password: args.GitPassword, PrivateKey: args.GitPrivateKey, RegistrationToken: args.RegistrationToken,
		},
	}, opts)
	if err != nil {
		return nil, err
	}
	a.PublicKey = installed.PublicKey

	return a, ctx.RegisterResourceOutputs(a, pulumi.Map{"publicKey": a.PublicKey})
}
