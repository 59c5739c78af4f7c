// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package components

import (
	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"

	"github.com/talos-proxmox/talos-proxmox/internal/gitops"
	"github.com/talos-proxmox/talos-proxmox/spec"
)

// FluxBootstrapType is the token of [FluxBootstrap].
const FluxBootstrapType = "talos-proxmox:components:FluxBootstrap"

// FluxBootstrapArgs hand a cluster to git by Flux.
type FluxBootstrapArgs struct {
	// ClusterName is the cluster's name; it identifies the cluster to the Kubernetes provider.
	ClusterName string
	// Kubeconfig of an administrator, known only when the cluster is ready. Secret.
	Kubeconfig pulumi.StringInput
	// Cluster is the cluster's resource: when it is deleted, what is inside goes with it, without a
	// word to its API.
	Cluster pulumi.Resource
	// GitOps says what to install and which repository to follow; what is left out gets its default.
	GitOps spec.GitOps
	// Charts keeps the chart's archive ([ProjectCharts]), so that a plan needs no network. Without it the
	// Kubernetes provider asks the repository at every plan, and checks no digest.
	Charts ChartCache
	// AgeKey decrypts the repository's secrets where GitOps.SOPS gives no key. Nil: the component generates
	// one, which goes with it.
	AgeKey *AgeKey
	// After is what comes first: what [RememberGitOps] returned.
	After []pulumi.Resource
}

// FluxBootstrap is Flux in a cluster, following a repository. It never writes to git. Unless
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
	f := &FluxBootstrap{}
	b, err := startGitOps(ctx, gitOpsStart{
		token: FluxBootstrapType, name: name, component: f, provider: gitops.Flux, clusterName: args.ClusterName,
		kubeconfig: args.Kubeconfig, cluster: args.Cluster, settings: args.GitOps, charts: args.Charts,
	}, opts)
	if err != nil {
		return nil, err
	}
	if err := (&fluxBuilder{b}).build(f, args); err != nil {
		return nil, err
	}

	return f, ctx.RegisterResourceOutputs(f, pulumi.Map{"publicKey": f.PublicKey, "ageRecipient": f.AgeRecipient})
}

// fluxBuilder registers the children of one [FluxBootstrap].
type fluxBuilder struct{ *gitOpsBuilder }

func (b *fluxBuilder) build(f *FluxBootstrap, args *FluxBootstrapArgs) error {
	before, err := b.namespace(args.After)
	if err != nil {
		return err
	}
	auth, publicKey, err := b.gitSecret(before)
	if err != nil {
		return err
	}
	f.PublicKey = publicKey
	sops, err := b.sopsSecret(f, args.AgeKey, before)
	if err != nil {
		return err
	}
	registered, err := b.register(f.PublicKey)
	if err != nil {
		return err
	}
	for _, first := range []pulumi.Resource{auth, sops, registered} {
		if first != nil {
			before = append(before, first)
		}
	}
	following, err := b.install(before)
	if err != nil {
		return err
	}

	return b.await(args.Kubeconfig, f.PublicKey, append(before, following...))
}

// install registers Flux and what makes it follow the repository, and returns the latter.
func (b *fluxBuilder) install(before []pulumi.Resource) ([]pulumi.Resource, error) {
	if gitops.AtDayZero(b.g) {
		return nil, nil
	}
	release, err := b.release(before)
	if err != nil {
		return nil, err
	}
	if gitops.IsOperator(b.g) {
		return b.instance(release)
	}

	return b.sync(release)
}

// sync makes the Flux of the community chart follow the repository.
func (b *fluxBuilder) sync(release pulumi.Resource) ([]pulumi.Resource, error) {
	if b.g.Git.URL == nil {
		return nil, nil
	}
	repository, err := gitOpsObject(gitops.GitRepository(b.g)).register(b.ctx, b.name+"-repository", b.kept(release)...)
	if err != nil {
		return nil, err
	}
	kustomization, err := gitOpsObject(gitops.Kustomization(b.g)).register(b.ctx, b.name+"-kustomization", b.kept(release, repository)...)
	if err != nil {
		return nil, err
	}

	return []pulumi.Resource{repository, kustomization}, nil
}

// instance asks the Flux operator for a Flux that follows the repository. On removal the instance goes
// first, while its operator still runs, and cleans up after itself.
func (b *fluxBuilder) instance(release pulumi.Resource) ([]pulumi.Resource, error) {
	wanted, err := gitops.FluxInstance(b.g)
	if err != nil {
		return nil, err //nolint:wrapcheck // names the object
	}
	made, err := gitOpsObject(wanted).register(b.ctx, b.name+"-instance", b.after(release)...)
	if err != nil {
		return nil, err
	}

	return []pulumi.Resource{made}, nil
}
