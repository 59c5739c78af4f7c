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
// [ArgoDayZero]), and only the credentials are registered here.
func NewArgoBootstrap(
	ctx *pulumi.Context, name string, args *ArgoBootstrapArgs, opts ...pulumi.ResourceOption,
) (*ArgoBootstrap, error) {
	if err := validateArgo(name, args.GitOps); err != nil {
		return nil, err
	}
	g := withArgoDefaults(args.ClusterName, args.GitOps)
	if err := validateGitOps(name, args.ClusterName, g, args.Charts); err != nil {
		return nil, err
	}
	values, err := argoChartValues(g)
	if err != nil {
		return nil, fmt.Errorf("Argo CD bootstrap %q: %w", name, err)
	}

	a := &ArgoBootstrap{}
	start, err := startGitOps(ctx, ArgoBootstrapType, name, a, args.ClusterName, args.Kubeconfig, args.Cluster, g, args.Charts, opts)
	if err != nil {
		return nil, err
	}
	if err := (&argoBuilder{start, args.ClusterName}).build(a, args.After, values); err != nil {
		return nil, err
	}

	return a, ctx.RegisterResourceOutputs(a, pulumi.Map{"publicKey": a.PublicKey})
}

// argoBuilder registers the children of one [ArgoBootstrap].
type argoBuilder struct {
	*gitOpsBuilder

	clusterName string
}

func (b *argoBuilder) build(a *ArgoBootstrap, before []pulumi.Resource, values map[string]any) error {
	before = slices.Clone(before)
	if !atDayZero(b.g) {
		namespace, err := namespaceObject(*b.g.Namespace).register(b.ctx, b.name+"-namespace", b.kept()...)
		if err != nil {
			return err
		}
		before = append(before, namespace)
	}
	secret, err := b.gitSecret(a, before)
	if err != nil {
		return err
	}
	registered, err := b.register(b.clusterName, a.PublicKey)
	if err != nil || atDayZero(b.g) {
		return err
	}
	for _, first := range []pulumi.Resource{secret, registered} {
		if first != nil {
			before = append(before, first)
		}
	}
	release, err := registerRelease(b.ctx, b.name+"-release", argoRelease, *b.g.Namespace, b.charts, b.g.Chart, values, b.after(before...)...)
	if err != nil || b.g.Git.URL == nil {
		return err
	}
	_, err = object{
		apiVersion: applicationVersion, kind: applicationKind, namespace: *b.g.Namespace, name: b.clusterName,
		fields: kubernetes.UntypedArgs{"spec": pulumi.ToMap(applicationSpec(b.g))},
	}.register(b.ctx, b.name+"-application", b.after(release)...)

	return err
}

// gitSecret registers the secret that Argo CD reads the repository with; nil when it needs none.
func (b *argoBuilder) gitSecret(a *ArgoBootstrap, before []pulumi.Resource) (pulumi.Resource, error) {
	a.PublicKey = pulumi.String("").ToStringOutput()
	if b.g.Git.URL == nil || b.g.Git.Auth == nil || b.g.Git.Auth.Type == nil {
		return nil, nil //nolint:nilnil // no secret, no error
	}
	auth := *b.g.Git.Auth
	data := map[string]pulumi.StringInput{"type": pulumi.String("git"), "url": pulumi.String(*b.g.Git.URL)}
	switch *auth.Type {
	case "ssh":
		key, err := deployKey(b.ctx, b.name+"-key", auth.PrivateKey, b.into[0])
		if err != nil {
			return nil, err
		}
		a.PublicKey = key.public
		data["sshPrivateKey"] = key.private
	case "token", "basic":
		data["username"] = pulumi.String(spec.Or(auth.Username, "git"))
		data["password"] = pulumi.String(revealed(auth.Password))
	case "githubApp":
		data["githubAppID"] = pulumi.String(auth.GitHubApp.ID)
		data["githubAppInstallationID"] = pulumi.String(auth.GitHubApp.InstallationID)
		data["githubAppPrivateKey"] = pulumi.String(auth.GitHubApp.PrivateKey.Reveal())
		if auth.GitHubApp.BaseURL != nil {
			data["githubAppEnterpriseBaseUrl"] = pulumi.String(*auth.GitHubApp.BaseURL)
		}
	}

	return registerSecret(b.ctx, b.name+"-git", object{
		namespace: *b.g.Namespace, name: b.clusterName + "-repository",
		labels: pulumi.StringMap{"argocd.argoproj.io/secret-type": pulumi.String("repository")},
	}, data, b.after(before...)...)
}
