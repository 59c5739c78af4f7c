// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package components

import (
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/talos-proxmox/talos-proxmox/internal/check"
	"github.com/talos-proxmox/talos-proxmox/internal/rules"
	"github.com/talos-proxmox/talos-proxmox/spec"
)

const (
	// ArgoChartRepository holds Argo CD's chart.
	ArgoChartRepository = "https://argoproj.github.io/argo-helm"
	// ArgoChartVersion is the version of the chart (Argo CD v3.4) when none is asked for.
	ArgoChartVersion = "10.1.1"

	// argoProvider is how settings name Argo CD.
	argoProvider = "argocd"
	// argoRelease is the release's name, which the names of what the chart makes begin with.
	argoRelease = "argocd"

	applicationVersion = "argoproj.io/v1alpha1"
	applicationKind    = "Application"
)

// withArgoDefaults says what was left out.
func withArgoDefaults(clusterName string, g spec.GitOps) spec.GitOps {
	provider := argoProvider
	g.Provider = &provider
	g = spec.Config{Cluster: spec.Cluster{Name: &clusterName}, GitOps: g}.WithDefaults().GitOps
	if g.Chart.Version == nil {
		g.Chart.Version = spec.Ptr(ArgoChartVersion)
	}

	return g
}

// validateArgo finds settings that Argo CD would leave without effect.
func validateArgo(name string, g spec.GitOps) error {
	var problems check.List
	rules.CheckArgoCD(g, "", &problems)

	return problems.Err("GitOps " + name) //nolint:wrapcheck // says everything
}

// argoChartValues are the chart's values: the user's over those that follow from the settings.
func argoChartValues(g spec.GitOps) (map[string]any, error) {
	configs := map[string]any{"cm": map[string]any{
		"timeout.reconciliation": seconds(g.Git.Interval),
		// Up to a minute more by default, which an interval that somebody chose should not get.
		"timeout.reconciliation.jitter": "0s",
	}}
	if auth := g.Git.Auth; auth != nil {
		if auth.KnownHosts != nil {
			// In place of the chart's own list: no host key is trusted but those that the user checked.
			configs["ssh"] = map[string]any{"knownHosts": strings.TrimSpace(*auth.KnownHosts) + "\n"}
		}
		if auth.CA != nil && g.Git.URL != nil {
			u, err := url.Parse(*g.Git.URL)
			if err != nil {
				return nil, fmt.Errorf("git.url: %q is no URL", *g.Git.URL)
			}
			configs["tls"] = map[string]any{"certificates": map[string]any{u.Hostname(): string(*auth.CA)}}
		}
	}

	return chartValues(g.Chart, map[string]any{"configs": configs})
}

// seconds is a duration in whole seconds, one at least: "60s".
func seconds(d *spec.Duration) string {
	return fmt.Sprintf("%ds", max(1, int(time.Duration(spec.Or(d, 0)).Round(time.Second)/time.Second)))
}

// applicationSpec follows the path in the repository. The Application gets no finalizer: when it is
// removed itself, as when GitOps is turned off, what it applied keeps running.
func applicationSpec(g spec.GitOps) map[string]any {
	automated := map[string]any{"prune": *g.Git.Prune, "selfHeal": true}
	policy := map[string]any{"automated": automated}
	if g.DestinationNamespace != nil {
		policy["syncOptions"] = []any{"CreateNamespace=true"}
	}

	return map[string]any{
		"project": "default",
		"source": map[string]any{
			"repoURL": *g.Git.URL, "targetRevision": revision(g.Git), "path": argoPath(g.Git),
		},
		"destination": map[string]any{
			"server": "https://kubernetes.default.svc", "namespace": spec.Or(g.DestinationNamespace, "default"),
		},
		"syncPolicy": policy,
	}
}

// revision is what to follow in the repository, the most exact of what was said.
func revision(g spec.Git) string {
	for _, ref := range []*string{g.Commit, g.Tag, g.Semver, g.Branch} {
		if ref != nil {
			return *ref
		}
	}

	return "main"
}

// argoPath is the path as Argo CD writes it: "clusters/dev", and "." for the repository itself.
func argoPath(g spec.Git) string {
	path := strings.Trim(strings.TrimPrefix(spec.Or(g.Path, ""), "./"), "/")
	if path == "" {
		return "."
	}

	return path
}
