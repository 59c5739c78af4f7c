// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package addons

import (
	"github.com/talos-proxmox/talos-proxmox/internal/check"
	"github.com/talos-proxmox/talos-proxmox/spec"
)

// CheckArgoCD records settings that only Flux has, and that Argo CD would leave without effect, at their
// paths under at.
func CheckArgoCD(g spec.GitOps, at string, l *check.List) {
	for _, s := range []struct {
		path, problem string
		written       bool
	}{
		{"method", "is a choice of Flux, and the provider is argocd: remove it", g.Method != nil},
		{"version", "is for the Flux operator, and the provider is argocd: give chart.version", g.Version != nil},
		{"registry", "holds images of Flux, and the provider is argocd: give global.image.repository in chart.values", g.Registry != nil},
		{"components", "are those of Flux, and the provider is argocd: remove them", len(g.Components) > 0},
		{"sops", "works with Flux, and the provider is argocd: remove it", g.SOPS != nil},
		{"await", "asks Flux, and the provider is argocd: remove it", g.Await != nil},
		{"git.syncInterval", "is a setting of Flux; Argo CD corrects drift when it sees it: remove it", g.Git.SyncInterval != nil},
		{"git.timeout", "is a setting of Flux, and the provider is argocd: remove it", g.Git.Timeout != nil},
		{"git.wait", "is a setting of Flux; Argo CD always watches the health of what it applied: remove it", g.Git.Wait != nil},
	} {
		if s.written {
			l.Addf(check.Join(at, s.path), "%s", s.problem)
		}
	}
	if g.Git.Branch != nil && g.Git.Commit != nil {
		l.Addf(check.Join(at, "git"), "has branch and commit, and Argo CD follows one of them: keep one")
	}
}

// fluxOnly records settings that have no meaning in one way of installing Flux.
func (r *rules) fluxOnly(g spec.GitOps) {
	if spec.Value(g.DayZero) {
		r.Addf("gitops.dayZero", "is a choice of Argo CD: with flux set gitops.method to inline")
	}
	if g.Version != nil && *g.Method != "operator" {
		r.Addf("gitops.version", "is for the Flux operator: set gitops.method to operator, or give chart.version")
	}
	for i, name := range g.Components {
		if name == "source-watcher" && *g.Method != "operator" {
			r.Addf(check.Index("gitops.components", i),
				"source-watcher is left to the Flux operator: set gitops.method to operator, or switch it on in chart.values")
		}
	}
}
