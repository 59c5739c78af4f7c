// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package components

import (
	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"

	"github.com/talos-proxmox/talos-proxmox/internal/gitops"
	"github.com/talos-proxmox/talos-proxmox/spec"
)

// ArgoBootstrapType is the token of [ArgoBootstrap].
const ArgoBootstrapType = "talos-proxmox:components:ArgoBootstrap"

// ArgoBootstrapArgs hand a cluster to git by Argo CD.
type ArgoBootstrapArgs struct {
	// ClusterName is the cluster's name; it identifies the cluster to the Kubernetes provider, and the
	// Application bears it.
	ClusterName string
	// Kubeconfig of an administrator, known only when the cluster is ready. Secret.
	Kubeconfig pulumi.StringInput
	// Cluster is the cluster's resource: when it is deleted, what is inside goes with it, without a
	// word to its API.
	Cluster pulumi.Resource
	// GitOps says what to install and which repository to follow; what is left out gets its default,
	// and what only Flux has is refused.
	GitOps spec.GitOps
	// Charts keeps the chart's archive ([ProjectCharts]), so that a plan needs no network. Without it the
	// Kubernetes provider asks the repository at every plan, and checks no digest.
	Charts ChartCache
	// After is what comes first: what [RememberGitOps] returned.
	After []pulumi.Resource
}

// ArgoBootstrap is Argo CD in a cluster, following a repository. It never writes to git. Nothing waits
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
	a := &ArgoBootstrap{}
	b, err := startGitOps(ctx, gitOpsStart{
		token: ArgoBootstrapType, name: name, component: a, provider: gitops.ArgoCD, clusterName: args.ClusterName,
		kubeconfig: args.Kubeconfig, cluster: args.Cluster, settings: args.GitOps, charts: args.Charts,
	}, opts)
	if err != nil {
		return nil, err
	}
	if err := (&argoBuilder{b}).build(a, args.After); err != nil {
		return nil, err
	}

	return a, ctx.RegisterResourceOutputs(a, pulumi.Map{"publicKey": a.PublicKey})
}

// argoBuilder registers the children of one [ArgoBootstrap].
type argoBuilder struct{ *gitOpsBuilder }

func (b *argoBuilder) build(a *ArgoBootstrap, after []pulumi.Resource) error {
	before, err := b.namespace(after)
	if err != nil {
		return err
	}
	secret, publicKey, err := b.gitSecret(before)
	if err != nil {
		return err
	}
	a.PublicKey = publicKey
	registered, err := b.register(a.PublicKey)
	if err != nil || gitops.AtDayZero(b.g) {
		return err
	}
	for _, first := range []pulumi.Resource{secret, registered} {
		if first != nil {
			before = append(before, first)
		}
	}
	release, err := b.release(before)
	if err != nil || b.g.Git.URL == nil {
		return err
	}
	_, err = gitOpsObject(gitops.Application(b.clusterName, b.g)).register(b.ctx, b.name+"-application", b.after(release)...)

	return err
}
