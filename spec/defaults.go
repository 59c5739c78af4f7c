// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package spec

import (
	"cmp"
	"slices"
	"strings"
)

// WithDefaults returns a copy in which everything that has a default is said: settings of the
// cluster, and every node's host, VM id, MAC addresses, slots, datastores and host name. What
// cannot be derived stays unset; Validate reports it. It is pure: a node's values follow from the
// node and from what all nodes share, never from other nodes.
func (c Config) WithDefaults() Config {
	c = Clone(c)
	c.fillShared()
	open := c.onlyGPUs()
	for i := range c.Nodes {
		if gpu := c.Nodes[i].GPU; open && gpu != nil {
			setDefault(&gpu.Taint, false)
		}
		c.fillNode(&c.Nodes[i])
	}
	slices.SortStableFunc(c.Nodes, func(a, b NamedNode) int {
		if a.IsControlPlane() != b.IsControlPlane() {
			if a.IsControlPlane() {
				return -1
			}

			return 1
		}

		return cmp.Or(strings.Compare(a.Name, b.Name))
	})

	return c
}

// fillShared fills what all nodes share.
func (c *Config) fillShared() {
	if c.Images == nil {
		c.Images = map[string]Image{}
	}
	if _, ok := c.Images[DefaultImage]; !ok {
		c.Images[DefaultImage] = Image{}
	}
	ensure(&c.Talos.KubePrism)
	ensure(&c.Talos.HostDNS)
	ensure(&c.Kubernetes.APIServer)
	ensure(&c.Kubernetes.ControllerManager)
	ensure(&c.Kubernetes.Scheduler)
	ensure(&c.Kubernetes.Proxy)
	ensure(&c.Kubernetes.Etcd)
	ensure(&c.Kubernetes.Kubelet)
	if Value(c.Kubernetes.Kubelet.RotateServerCertificates) {
		ensure(&c.Kubernetes.Kubelet.CertificateApprover)
	}
	if c.UsesCilium() {
		ensure(&c.CNI.Cilium)
	}
	c.fillCharts()
	said := c.GitOps
	FillDefaults(&c.Proxmox, &c.Images, &c.Cluster, &c.Talos, &c.Kubernetes, &c.CNI, &c.Manifests, &c.GitOps, &c.Lifecycle, &c.Output)

	setDefault(&c.Kubernetes.Proxy.Enabled, c.KubeProxyEnabled())
	setDefault(&c.Cluster.AllowSchedulingOnControlPlanes, c.SchedulingOnControlPlanes())
	setDefault(&c.Talos.HostDNS.ForwardKubeDNSToHost, *c.Talos.HostDNS.Enabled)
	setDefault(&c.Talos.HostDNS.ResolveMemberNames, false)
	c.fillGitOps(said)
}

// fillCharts says where the charts are that everybody takes from the same place.
func (c *Config) fillCharts() {
	if c.UsesCilium() {
		setDefault(&c.CNI.Cilium.Chart.Repository, "https://helm.cilium.io")
		setDefault(&c.CNI.Cilium.Chart.Name, "cilium")
	}
	chart := &c.GitOps.Chart
	switch provider := Value(c.GitOps.Provider); {
	case provider == "argocd":
		setDefault(&chart.Repository, "https://argoproj.github.io/argo-helm")
		setDefault(&chart.Name, "argo-cd")
	case provider == "flux" && Value(c.GitOps.Method) == "operator":
		setDefault(&chart.Repository, "oci://ghcr.io/controlplaneio-fluxcd/charts")
		setDefault(&chart.Name, "flux-operator")
	case provider == "flux":
		setDefault(&chart.Repository, "https://fluxcd-community.github.io/helm-charts")
		setDefault(&chart.Name, "flux2")
	}
	for name, chart := range c.Manifests.Charts {
		setDefault(&chart.Name, name)
		c.Manifests.Charts[name] = chart
	}
}

// fillGitOps fills what follows from the provider and the repository. What only Flux has stays as it
// was said when the provider is another one, so that rules can tell.
func (c *Config) fillGitOps(said GitOps) {
	g := &c.GitOps
	switch *g.Provider {
	case "none":
		// What was said has no meaning, and rules say so: defaults would hide which that was.
		provider := g.Provider
		*g = said
		g.Provider = provider

		return
	case "flux":
		setDefault(&g.Namespace, "flux-system")
	case "argocd":
		setDefault(&g.Namespace, "argocd")
		g.Method, g.Git.SyncInterval, g.Git.Timeout, g.Git.Wait =
			said.Method, said.Git.SyncInterval, said.Git.Timeout, said.Git.Wait
	default:
		return
	}
	if g.Git.Tag == nil && g.Git.Semver == nil && g.Git.Commit == nil {
		setDefault(&g.Git.Branch, "main")
	}
	if c.Cluster.Name != nil {
		setDefault(&g.Git.Path, "clusters/"+*c.Cluster.Name)
	}
	if g.Git.Auth == nil {
		return
	}
	if g.Git.Auth.Type == nil {
		if kind := authTypeOf(g.Git); kind != "" {
			g.Git.Auth.Type = &kind
		}
	}
	if kind := Value(g.Git.Auth.Type); kind == "token" || kind == "basic" {
		setDefault(&g.Git.Auth.Username, "git")
	}
}

// authTypeOf returns the kind of credential that was given.
func authTypeOf(g Git) string {
	switch {
	case strings.HasPrefix(Value(g.URL), "ssh://"):
		return "ssh"
	case g.Auth.GitHubApp != nil:
		return "githubApp"
	case g.Auth.Password != nil:
		return "token"
	default:
		return ""
	}
}

// ensure makes *p point to something.
func ensure[T any](p **T) {
	if *p == nil {
		*p = new(T)
	}
}

// setDefault sets *p when nothing was said.
func setDefault[T any](p **T, v T) {
	if *p == nil {
		*p = &v
	}
}
