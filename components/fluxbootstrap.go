// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package components

import (
	"fmt"
	"slices"

	"github.com/pulumi/pulumi-kubernetes/sdk/v4/go/kubernetes"
	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"

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

// fluxObject is the name of the GitRepository, of the Kustomization and of the repository's secret,
// the one that Flux's own bootstrap uses.
const fluxObject = "flux-system"

// NewFluxBootstrap registers Flux, by its community chart or by the Flux operator, the credentials of
// the repository and the objects that make Flux follow it. With the method inline Talos has installed
// Flux at day 0 (see [FluxDayZero]), and only the credentials are registered here.
func NewFluxBootstrap(
	ctx *pulumi.Context, name string, args *FluxBootstrapArgs, opts ...pulumi.ResourceOption,
) (*FluxBootstrap, error) {
	g := withFluxDefaults(args.ClusterName, args.GitOps)
	if err := validateGitOps(name, args.ClusterName, g, args.Charts); err != nil {
		return nil, err
	}
	values, err := chartValues(g.Chart, fluxValues(g))
	if err != nil {
		return nil, fmt.Errorf("Flux bootstrap %q: %w", name, err)
	}

	f := &FluxBootstrap{}
	start, err := startGitOps(ctx, FluxBootstrapType, name, f, args.ClusterName, args.Kubeconfig, args.Cluster, g, args.Charts, opts)
	if err != nil {
		return nil, err
	}
	if err := (&fluxBuilder{start}).build(f, args, values); err != nil {
		return nil, err
	}

	return f, ctx.RegisterResourceOutputs(f, pulumi.Map{"publicKey": f.PublicKey, "ageRecipient": f.AgeRecipient})
}

// fluxBuilder registers the children of one [FluxBootstrap].
type fluxBuilder struct{ *gitOpsBuilder }

func (b *fluxBuilder) build(f *FluxBootstrap, args *FluxBootstrapArgs, values map[string]any) error {
	before := slices.Clone(args.After)
	if *b.g.Method != "inline" {
		namespace, err := namespaceObject(*b.g.Namespace).register(b.ctx, b.name+"-namespace", b.kept()...)
		if err != nil {
			return err
		}
		before = append(before, namespace)
	}
	auth, err := b.gitSecret(f, before)
	if err != nil {
		return err
	}
	sops, err := b.sopsSecret(f, args.AgeKey, before)
	if err != nil {
		return err
	}
	registered, err := b.register(args.ClusterName, f.PublicKey)
	if err != nil {
		return err
	}
	for _, first := range []pulumi.Resource{auth, sops, registered} {
		if first != nil {
			before = append(before, first)
		}
	}
	following, err := b.install(values, before)
	if err != nil {
		return err
	}

	return b.await(args.Kubeconfig, f.PublicKey, append(before, following...))
}

// install registers Flux and what makes it follow the repository, and returns the latter.
func (b *fluxBuilder) install(values map[string]any, before []pulumi.Resource) ([]pulumi.Resource, error) {
	switch *b.g.Method {
	case "operator":
		return b.operator(values, before)
	case "inline":
		return nil, nil
	default:
		return b.chart(values, before)
	}
}

// chart installs Flux's community chart and makes Flux follow the repository.
func (b *fluxBuilder) chart(values map[string]any, before []pulumi.Resource) ([]pulumi.Resource, error) {
	release, err := registerRelease(b.ctx, b.name+"-release", "flux2", *b.g.Namespace, b.charts, b.g.Chart, values, b.after(before...)...)
	if err != nil {
		return nil, err
	}
	if b.g.Git.URL == nil {
		return nil, nil
	}
	repository, err := object{
		apiVersion: gitRepositoryVersion, kind: "GitRepository", namespace: *b.g.Namespace, name: fluxObject,
		fields: kubernetes.UntypedArgs{"spec": pulumi.ToMap(gitRepositorySpec(b.g))},
	}.register(b.ctx, b.name+"-repository", b.kept(release)...)
	if err != nil {
		return nil, err
	}
	kustomization, err := object{
		apiVersion: kustomizationVersion, kind: "Kustomization", namespace: *b.g.Namespace, name: fluxObject,
		fields: kubernetes.UntypedArgs{"spec": pulumi.ToMap(kustomizationSpec(b.g))},
	}.register(b.ctx, b.name+"-kustomization", b.kept(release, repository)...)
	if err != nil {
		return nil, err
	}

	return []pulumi.Resource{repository, kustomization}, nil
}

// operator installs the Flux operator and asks it for a Flux that follows the repository. On removal
// the instance goes first, while its operator still runs, and cleans up after itself.
func (b *fluxBuilder) operator(values map[string]any, before []pulumi.Resource) ([]pulumi.Resource, error) {
	release, err := registerRelease(b.ctx, b.name+"-release", "flux-operator", *b.g.Namespace, b.charts, b.g.Chart, values,
		b.after(before...)...)
	if err != nil {
		return nil, err
	}
	instance, err := fluxInstanceSpec(b.g)
	if err != nil {
		return nil, err
	}
	made, err := object{
		apiVersion: fluxInstanceVersion, kind: "FluxInstance", namespace: *b.g.Namespace, name: fluxInstanceName,
		fields: kubernetes.UntypedArgs{"spec": pulumi.ToMap(instance)},
	}.register(b.ctx, b.name+"-instance", b.after(release)...)
	if err != nil {
		return nil, err
	}

	return []pulumi.Resource{made}, nil
}
