// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package gitops

import (
	"cmp"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/talos-proxmox/talos-proxmox/spec"
)

const applicationVersion = "argoproj.io/v1alpha1"

// argoValues returns the chart's values that follow from the settings.
func argoValues(g spec.GitOps) (map[string]any, error) {
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

	return map[string]any{"configs": configs}, nil
}

// seconds returns a duration in whole seconds, one at least: "60s".
func seconds(d *spec.Duration) string {
	return fmt.Sprintf("%ds", max(1, int(time.Duration(spec.Value(d)).Round(time.Second)/time.Second)))
}

// Application returns the object that makes Argo CD follow the repository. It gets no finalizer: when it
// is removed, as when GitOps is turned off, what it applied keeps running.
func Application(clusterName string, g spec.GitOps) Object {
	automated := map[string]any{"prune": *g.Git.Prune, "selfHeal": true}
	policy := map[string]any{"automated": automated}
	if g.DestinationNamespace != nil {
		policy["syncOptions"] = []any{"CreateNamespace=true"}
	}

	return Object{
		APIVersion: applicationVersion, Kind: "Application", Namespace: *g.Namespace, Name: clusterName,
		Spec: map[string]any{
			"project": "default",
			"source": map[string]any{
				"repoURL": *g.Git.URL, "targetRevision": revision(g.Git), "path": argoPath(g.Git),
			},
			"destination": map[string]any{
				"server": "https://kubernetes.default.svc", "namespace": cmp.Or(spec.Value(g.DestinationNamespace), "default"),
			},
			"syncPolicy": policy,
		},
	}
}

// revision returns what to follow in the repository, the most exact of what was said.
func revision(g spec.Git) string {
	for _, ref := range []*string{g.Commit, g.Tag, g.Semver, g.Branch} {
		if ref != nil {
			return *ref
		}
	}

	return "main"
}

// argoPath returns the path as Argo CD writes it: "clusters/dev", and "." for the repository itself.
func argoPath(g spec.Git) string {
	path := strings.Trim(strings.TrimPrefix(spec.Value(g.Path), "./"), "/")
	if path == "" {
		return "."
	}

	return path
}
