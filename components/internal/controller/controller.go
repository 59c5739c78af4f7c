// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

// Package controller registers a GitOps controller in a cluster: Flux or Argo CD, with the credentials of the
// repository and the objects that make it follow the repository.
package controller

import (
	"fmt"
	"slices"
	"time"

	"github.com/pulumi/pulumi-kubernetes/sdk/v4/go/kubernetes"
	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"

	"github.com/talos-proxmox/talos-proxmox/components/internal/hook"
	"github.com/talos-proxmox/talos-proxmox/components/internal/kube"
	"github.com/talos-proxmox/talos-proxmox/internal/cluster"
	"github.com/talos-proxmox/talos-proxmox/internal/gitops"
	"github.com/talos-proxmox/talos-proxmox/internal/kubeapply"
)

// Installed holds what a registered controller offers to others.
type Installed struct {
	// PublicKey is the deploy key to allow; empty without an SSH key.
	PublicKey pulumi.StringOutput
	// AgeRecipient is what secrets in the repository are encrypted for; empty without SOPS.
	AgeRecipient pulumi.StringOutput
}

// Install checks the settings, then registers the component itself, which goes with its cluster, and the
// controller in it.
func Install(ctx *pulumi.Context, a Args, opts []pulumi.ResourceOption) (*Installed, error) {
	b, err := start(ctx, a, opts)
	if err != nil {
		return nil, err
	}
	before, err := b.namespace()
	if err != nil {
		return nil, err
	}
	auth, publicKey, err := b.gitSecret(before)
	if err != nil {
		return nil, err
	}
	sops, recipient, err := b.sopsSecret(before)
	if err != nil {
		return nil, err
	}
	registered, err := b.register(publicKey)
	if err != nil {
		return nil, err
	}
	for _, first := range []pulumi.Resource{auth.resource, sops.resource, registered} {
		if first != nil {
			before = append(before, first)
		}
	}
	made := &Installed{PublicKey: publicKey, AgeRecipient: recipient}
	following, err := b.install(before)
	if err != nil || *b.g.Provider != gitops.Flux {
		return made, err
	}

	return made, b.await(a.Kubeconfig, append(auth.values, sops.values...), publicKey, append(before, following...))
}

// start registers the component itself, and the provider that all its children use.
func start(ctx *pulumi.Context, a Args, opts []pulumi.ResourceOption) (*builder, error) {
	a.Settings.Provider = &a.Provider
	settings := a.Credentials.Fill(a.Settings)
	if err := gitops.Check(a.Name, a.ClusterName, settings, a.Charts.Dir != ""); err != nil {
		return nil, err
	}
	g := gitops.WithDefaults(a.ClusterName, settings)
	values, err := gitops.Values(g)
	if err != nil {
		return nil, fmt.Errorf("GitOps %q: %w", a.Name, err)
	}

	given, err := pulumi.NewResourceOptions(opts...)
	if err != nil {
		return nil, fmt.Errorf("GitOps %q: %w", a.Name, err)
	}
	var outside []pulumi.ResourceOption
	if given.Parent != nil {
		outside = append(outside, pulumi.Parent(given.Parent))
	}
	if a.Cluster != nil {
		opts = append(opts[:len(opts):len(opts)], pulumi.DeletedWith(a.Cluster))
	}
	if err := ctx.RegisterComponentResource(a.Token, a.Name, a.Component, opts...); err != nil {
		return nil, fmt.Errorf("registering GitOps %q: %w", a.Name, err)
	}
	provider, err := kube.NewProvider(ctx, a.Name+"-kubernetes", a.ClusterName, a.Kubeconfig, pulumi.Parent(a.Component))
	if err != nil {
		return nil, err
	}

	return &builder{
		ctx: ctx, name: a.Name, clusterName: a.ClusterName, g: g, charts: a.Charts, credentials: a.Credentials,
		kubeconfig: a.Kubeconfig, values: values,
		first: given.DependsOn, outside: outside,
		into: []pulumi.ResourceOption{pulumi.Parent(a.Component), pulumi.Provider(provider)},
	}, nil
}

// namespace registers the controller's namespace where Talos has not made it, and returns what comes before
// everything in it.
func (b *builder) namespace() ([]pulumi.Resource, error) {
	before := slices.Clone(b.first)
	if gitops.AtDayZero(b.g) {
		return before, nil
	}
	made, err := kube.Namespace(*b.g.Namespace).Register(b.ctx, b.name+"-namespace", b.retained()...)
	if err != nil {
		return nil, err
	}

	return append(before, made), nil
}

// install registers the controller and what makes it follow the repository, and returns the latter.
func (b *builder) install(before []pulumi.Resource) ([]pulumi.Resource, error) {
	if gitops.AtDayZero(b.g) {
		return nil, nil
	}
	hooks, err := b.releaseHooks()
	if err != nil {
		return nil, err
	}
	release, err := kube.RegisterRelease(b.ctx, b.name+"-release", gitops.Release(b.g), *b.g.Namespace, b.charts, b.g.Chart, b.values,
		time.Duration(*b.g.InstallTimeout),
		append(b.after(before...), pulumi.ResourceHooks(hooks))...)
	if err != nil {
		return nil, err
	}
	switch {
	case *b.g.Provider == gitops.ArgoCD:
		return b.application(release)
	case gitops.IsOperator(b.g):
		return b.instance(release)
	default:
		return b.sync(release)
	}
}

// releaseHooks returns hooks for the release: what an earlier run has left of it goes before it is installed. The
// state has no release then, and Helm would refuse the name for ever.
func (b *builder) releaseHooks() (*pulumi.ResourceHookBinding, error) {
	known := hook.FutureOf("the kubeconfig of cluster "+b.clusterName, b.kubeconfig)
	name, namespace := gitops.Release(b.g), *b.g.Namespace
	forget, err := hook.Register(b.ctx, hook.ID("controller", b.name, "release"), func(step hook.Step, _ *pulumi.ResourceHookArgs) error {
		kubeconfig, err := known.Get(b.ctx.Context())
		if err != nil {
			return err
		}

		return kubeapply.ForgetRelease(
			b.ctx.Context(), kubeconfig, namespace, name, cluster.DefaultPollOptions(time.Duration(*b.g.InstallTimeout)), step.Report)
	})
	if err != nil {
		return nil, err
	}

	return &pulumi.ResourceHookBinding{BeforeCreate: []*pulumi.ResourceHook{forget}}, nil
}

// application makes Argo CD follow the repository.
func (b *builder) application(release pulumi.Resource) ([]pulumi.Resource, error) {
	if b.g.Git.URL == nil {
		return nil, nil
	}
	made, err := b.object("-application", gitops.Application(b.clusterName, b.g), b.after(release))
	if err != nil {
		return nil, err
	}

	return []pulumi.Resource{made}, nil
}

// sync makes the Flux of the community chart follow the repository.
func (b *builder) sync(release pulumi.Resource) ([]pulumi.Resource, error) {
	if b.g.Git.URL == nil {
		return nil, nil
	}
	repository, err := b.object("-repository", gitops.GitRepository(b.g), b.retained(release))
	if err != nil {
		return nil, err
	}
	kustomization, err := b.object("-kustomization", gitops.Kustomization(b.g), b.retained(release, repository))
	if err != nil {
		return nil, err
	}

	return []pulumi.Resource{repository, kustomization}, nil
}

// instance asks the Flux operator for a Flux that follows the repository. On removal the instance goes first,
// while its operator still runs, and cleans up after itself.
func (b *builder) instance(release pulumi.Resource) ([]pulumi.Resource, error) {
	wanted, err := gitops.FluxInstance(b.g)
	if err != nil {
		return nil, err
	}
	made, err := b.object("-instance", wanted, b.after(release))
	if err != nil {
		return nil, err
	}

	return []pulumi.Resource{made}, nil
}

// object registers an object.
func (b *builder) object(suffix string, o gitops.Object, opts []pulumi.ResourceOption) (pulumi.Resource, error) {
	return kube.Object{
		APIVersion: o.APIVersion, Kind: o.Kind, Namespace: o.Namespace, Name: o.Name,
		Fields: kubernetes.UntypedArgs{"spec": pulumi.ToMap(o.Spec)},
	}.Register(b.ctx, b.name+suffix, opts...)
}
