// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package components

import (
	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"

	"github.com/talos-proxmox/talos-proxmox/components/internal/controller"
	"github.com/talos-proxmox/talos-proxmox/internal/gitops"
	"github.com/talos-proxmox/talos-proxmox/spec"
)

// FluxBootstrapType is the token of [FluxBootstrap].
const FluxBootstrapType = "talos-proxmox:components:FluxBootstrap"

// FluxBootstrapArgs say how Flux is installed and what it follows.
type FluxBootstrapArgs struct {
	// ClusterName is the cluster's name; it identifies the cluster to the Kubernetes provider.
	ClusterName string
	// Kubeconfig of an administrator, known only when the cluster is ready. Secret.
	Kubeconfig pulumi.StringInput `pulumi:"kubeconfig"`
	// Cluster is the cluster's resource: when it is deleted, what is inside goes with it, without a
	// word to its API.
	Cluster pulumi.Resource
	// GitOps says what to install and which repository to follow; what is left out gets its default.
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
	// AgeKey is the age identity that decrypts the repository's secrets, where GitOps.SOPS gives none. Without
	// either the component generates one, which goes with it.
	AgeKey pulumi.StringInput `pulumi:"ageKey"`
}

// FluxBootstrap installs Flux in a cluster and has it follow a repository. It never writes to git. Unless
// GitOps.Await is set, nothing waits for the repository: an unreachable git host does not hold up a
// run, Flux goes on trying. Once removed, it leaves what it applied running, and with it its namespace,
// its kinds and its objects: to take those away would take away what they stand for.
type FluxBootstrap struct {
	pulumi.ResourceState

	// PublicKey is the deploy key to allow read access to, in the form of ~/.ssh/authorized_keys;
	// empty without an SSH key.
	PublicKey pulumi.StringOutput `pulumi:"publicKey"`
	// AgeRecipient is what secrets in the repository are encrypted for; empty without SOPS.
	AgeRecipient pulumi.StringOutput `pulumi:"ageRecipient"`
}

// NewFluxBootstrap registers Flux, by its community chart or by the Flux operator, the credentials of
// the repository and the objects that make Flux follow it. With the method inline Talos has installed
// Flux at day 0 (see [AddGitOpsDayZero]), and only the credentials are registered here.
func NewFluxBootstrap(
	ctx *pulumi.Context, name string, args *FluxBootstrapArgs, opts ...pulumi.ResourceOption,
) (*FluxBootstrap, error) {
	if args == nil {
		return nil, errNoArgs("GitOps", name)
	}
	f := &FluxBootstrap{}
	installed, err := controller.Install(ctx, controller.Args{
		Token: FluxBootstrapType, Name: name, Component: f, Provider: gitops.Flux, ClusterName: args.ClusterName,
		Kubeconfig: args.Kubeconfig, Cluster: args.Cluster, Settings: args.GitOps, Charts: args.Charts.cache,
		Credentials: controller.Credentials{
			Password: args.GitPassword, PrivateKey: args.GitPrivateKey, RegistrationToken: args.RegistrationToken,
			AgeKey: args.AgeKey,
		},
	}, opts)
	if err != nil {
		return nil, err
	}
	f.PublicKey = installed.PublicKey
	f.AgeRecipient = installed.AgeRecipient

	return f, ctx.RegisterResourceOutputs(f, pulumi.Map{"publicKey": f.PublicKey, "ageRecipient": f.AgeRecipient})
}
