// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package components

import (
	"fmt"
	"slices"

	"github.com/pulumi/pulumi-kubernetes/sdk/v4/go/kubernetes"
	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"

	"github.com/talos-proxmox/talos-proxmox/internal/gitops"
	"github.com/talos-proxmox/talos-proxmox/spec"
)

// AddGitOpsDayZero adds the GitOps controller to the manifests that Talos applies at bootstrap, where
// the settings ask for that (Flux's method inline, Argo CD's dayZero). Pass what it returns to
// [NewTalosCluster]. Any other configuration comes back as it is.
func AddGitOpsDayZero(cfg spec.Config) (spec.Config, error) {
	return gitops.DayZero(cfg) //nolint:wrapcheck // names the setting
}

// gitOpsStart is what the components of Flux and Argo CD begin with.
type gitOpsStart struct {
	token, name string
	component   pulumi.ComponentResource
	provider    string
	clusterName string
	kubeconfig  pulumi.StringInput
	cluster     pulumi.Resource
	settings    spec.GitOps
	charts      ChartCache
}

// gitOpsBuilder registers the children of a component that installs a GitOps controller.
type gitOpsBuilder struct {
	ctx               *pulumi.Context
	name, clusterName string
	g                 spec.GitOps
	charts            ChartCache
	values            map[string]any
	into              []pulumi.ResourceOption
	// outside are the options of what does not go with the cluster.
	outside []pulumi.ResourceOption
}

// startGitOps checks the settings, then registers the component itself, which goes with its cluster, and
// the provider that all its children use.
func startGitOps(ctx *pulumi.Context, s gitOpsStart, opts []pulumi.ResourceOption) (*gitOpsBuilder, error) {
	s.settings.Provider = &s.provider
	if err := gitops.Check(s.name, s.clusterName, s.settings, s.charts.Dir != ""); err != nil {
		return nil, err //nolint:wrapcheck // says everything
	}
	g := gitops.WithDefaults(s.clusterName, s.settings)
	values, err := gitops.Values(g)
	if err != nil {
		return nil, fmt.Errorf("GitOps %q: %w", s.name, err)
	}

	var outside []pulumi.ResourceOption
	if given, err := pulumi.NewResourceOptions(opts...); err == nil && given.Parent != nil {
		outside = append(outside, pulumi.Parent(given.Parent))
	}
	if s.cluster != nil {
		opts = append(opts[:len(opts):len(opts)], pulumi.DeletedWith(s.cluster))
	}
	if err := ctx.RegisterComponentResource(s.token, s.name, s.component, opts...); err != nil {
		return nil, fmt.Errorf("registering GitOps %q: %w", s.name, err)
	}
	provider, err := NewKubernetesProvider(ctx, s.name+"-kubernetes", s.clusterName, s.kubeconfig, pulumi.Parent(s.component))
	if err != nil {
		return nil, err
	}

	return &gitOpsBuilder{
		ctx: ctx, name: s.name, clusterName: s.clusterName, g: g, charts: s.charts, values: values, outside: outside,
		into: []pulumi.ResourceOption{pulumi.Parent(s.component), pulumi.Provider(provider)},
	}, nil
}

// after returns the options of a child that comes after others.
func (b *gitOpsBuilder) after(before ...pulumi.Resource) []pulumi.ResourceOption {
	return append(b.into[:len(b.into):len(b.into)], pulumi.DependsOn(before))
}

// kept returns the options of a child that comes after others and stays in the cluster when nobody asks
// for it any more.
func (b *gitOpsBuilder) kept(before ...pulumi.Resource) []pulumi.ResourceOption {
	return append(b.after(before...), pulumi.RetainOnDelete(true))
}

// namespace registers the controller's namespace where Talos has not made it, and returns what comes
// before everything in it.
func (b *gitOpsBuilder) namespace(after []pulumi.Resource) ([]pulumi.Resource, error) {
	before := slices.Clone(after)
	if gitops.AtDayZero(b.g) {
		return before, nil
	}
	namespace, err := namespaceObject(*b.g.Namespace).register(b.ctx, b.name+"-namespace", b.kept()...)
	if err != nil {
		return nil, err
	}

	return append(before, namespace), nil
}

// gitSecret registers the secret that the controller reads the repository with, nil when it needs none,
// and returns the deploy key to allow, empty without an SSH key.
func (b *gitOpsBuilder) gitSecret(before []pulumi.Resource) (pulumi.Resource, pulumi.StringOutput, error) {
	publicKey := pulumi.String("").ToStringOutput()
	wanted, needed := gitops.NewCredentials(b.clusterName, b.g)
	if !needed {
		return nil, publicKey, nil
	}
	data := map[string]pulumi.StringInput{}
	for field, value := range wanted.Data {
		data[field] = pulumi.String(value)
	}
	if wanted.PrivateKey != "" {
		key, err := deployKey(b.ctx, b.name+"-key", b.g.Git.Auth.PrivateKey, b.into[0])
		if err != nil {
			return nil, publicKey, err
		}
		publicKey, data[wanted.PrivateKey] = key.public, key.private
		if wanted.PublicKey != "" {
			data[wanted.PublicKey] = key.public
		}
	}
	secret, err := registerSecret(b.ctx, b.name+"-git", object{
		namespace: *b.g.Namespace, name: wanted.Name, labels: labels(wanted.Labels),
	}, data, b.after(before...)...)

	return secret, publicKey, err
}

// release registers the controller's chart.
func (b *gitOpsBuilder) release(before []pulumi.Resource) (*helmRelease, error) {
	return registerRelease(b.ctx, b.name+"-release", gitops.Release(b.g), *b.g.Namespace, b.charts, b.g.Chart, b.values,
		b.after(before...)...)
}

// gitOpsObject returns an object in the form in which objects are registered here.
func gitOpsObject(o gitops.Object) object {
	return object{
		apiVersion: o.APIVersion, kind: o.Kind, namespace: o.Namespace, name: o.Name,
		fields: kubernetes.UntypedArgs{"spec": pulumi.ToMap(o.Spec)},
	}
}

// labels returns labels as Pulumi takes them.
func labels(given map[string]string) pulumi.StringMap {
	if len(given) == 0 {
		return nil
	}

	return pulumi.ToStringMap(given)
}
