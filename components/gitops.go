// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package components

import (
	"fmt"

	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"

	"github.com/talos-proxmox/talos-proxmox/internal/check"
	"github.com/talos-proxmox/talos-proxmox/spec"
)

// gitOpsBuilder registers the children of a component that hands a cluster to git.
type gitOpsBuilder struct {
	ctx    *pulumi.Context
	name   string
	g      spec.GitOps
	charts ChartCache
	into   []pulumi.ResourceOption
	// outside are the options of what does not go with the cluster.
	outside []pulumi.ResourceOption
}

// startGitOps registers the component itself, which goes with its cluster, and the provider that all
// its children use.
func startGitOps(
	ctx *pulumi.Context, token, name string, component pulumi.ComponentResource,
	clusterName string, kubeconfig pulumi.StringInput, cluster pulumi.Resource, g spec.GitOps, charts ChartCache,
	opts []pulumi.ResourceOption,
) (*gitOpsBuilder, error) {
	var outside []pulumi.ResourceOption
	if given, err := pulumi.NewResourceOptions(opts...); err == nil && given.Parent != nil {
		outside = append(outside, pulumi.Parent(given.Parent))
	}
	if cluster != nil {
		opts = append(opts[:len(opts):len(opts)], pulumi.DeletedWith(cluster))
	}
	if err := ctx.RegisterComponentResource(token, name, component, opts...); err != nil {
		return nil, fmt.Errorf("registering GitOps %q: %w", name, err)
	}
	provider, err := NewKubernetesProvider(ctx, name+"-kubernetes", clusterName, kubeconfig, pulumi.Parent(component))
	if err != nil {
		return nil, err
	}

	return &gitOpsBuilder{
		ctx: ctx, name: name, g: g, charts: charts, outside: outside, into: []pulumi.ResourceOption{pulumi.Parent(component), pulumi.Provider(provider)},
	}, nil
}

// after are the options of a child that comes after others.
func (b *gitOpsBuilder) after(before ...pulumi.Resource) []pulumi.ResourceOption {
	return append(b.into[:len(b.into):len(b.into)], pulumi.DependsOn(before))
}

// kept are the options of a child that comes after others and stays in the cluster when nobody asks for
// it any more.
func (b *gitOpsBuilder) kept(before ...pulumi.Resource) []pulumi.ResourceOption {
	return append(b.after(before...), pulumi.RetainOnDelete(true))
}

// atDayZero says whether Talos installs the controller at bootstrap.
func atDayZero(g spec.GitOps) bool {
	if spec.Or(g.Provider, "") == argoProvider {
		return spec.Or(g.DayZero, false)
	}

	return spec.Or(g.Method, "") == "inline"
}

// validateGitOps checks what Flux and Argo CD have in common.
func validateGitOps(name, clusterName string, g spec.GitOps, charts ChartCache) error {
	var problems check.List
	if clusterName == "" {
		problems.Addf("clusterName", "is required")
	}
	if g.Chart.Digest != nil && charts.Dir == "" && !atDayZero(g) {
		problems.Addf("chart.digest", "cannot be checked for a chart that the Kubernetes provider fetches: give Charts, or leave it out")
	}
	if g.Git.Auth != nil && spec.Or(g.Git.Auth.Type, "") == "ssh" && spec.Or(g.Git.Auth.KnownHosts, "") == "" {
		problems.Addf("git.auth.knownHosts", "is required for ssh: the output of `ssh-keyscan` that you have checked")
	}

	return problems.Err("GitOps " + name) //nolint:wrapcheck // says everything
}

// gitOpsOrder puts the controller behind everything else that a cluster gets at day 0.
const gitOpsOrder = 900

// GitOpsDayZero adds the GitOps controller to what Talos applies at bootstrap, where the stack asks for
// that: see [FluxDayZero] and [ArgoDayZero]. Any other configuration comes back as it is.
func GitOpsDayZero(cfg spec.Config) (spec.Config, error) {
	cfg, err := FluxDayZero(cfg)
	if err != nil {
		return cfg, err
	}

	return ArgoDayZero(cfg)
}

// addDayZero adds a controller's chart as a release, and the objects that make it follow the repository
// (YAML, none when empty) as the manifest sync, to a copy of the configuration.
func addDayZero(cfg spec.Config, g spec.GitOps, release, values, sync, objects string) (spec.Config, error) {
	cfg = spec.Clone(cfg)
	if _, taken := cfg.Manifests.Charts[release]; taken {
		return cfg, fmt.Errorf("manifests.charts.%s: gitops installs a chart of this name at day 0: choose another", release)
	}
	if _, taken := cfg.Manifests.Inline[sync]; taken {
		return cfg, fmt.Errorf("manifests.inline.%s: gitops has a manifest of this name at day 0: choose another", sync)
	}
	if cfg.Manifests.Charts == nil {
		cfg.Manifests.Charts = map[string]spec.DayZeroChart{}
	}
	chart := g.Chart
	chart.Values = spec.Ptr(spec.Text(values))
	cfg.Manifests.Charts[release] = spec.DayZeroChart{
		Chart: chart, Namespace: g.Namespace, CreateNamespace: spec.Ptr(true), Order: spec.Ptr(gitOpsOrder),
	}
	if objects == "" {
		return cfg, nil
	}
	if cfg.Manifests.Inline == nil {
		cfg.Manifests.Inline = map[string]spec.Manifest{}
	}
	cfg.Manifests.Inline[sync] = spec.Manifest{Order: spec.Ptr(gitOpsOrder + 1), Inline: spec.Ptr(spec.Text(objects))}

	return cfg, nil
}
