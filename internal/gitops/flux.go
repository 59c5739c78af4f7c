// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package gitops

import (
	"slices"
	"strings"

	"github.com/talos-proxmox/talos-proxmox/internal/versions"
	"github.com/talos-proxmox/talos-proxmox/spec"
)

// The values of gitops.provider.
const (
	None   = "none"
	Flux   = "flux"
	ArgoCD = "argocd"
)

// The values of gitops.method, by which Flux is installed.
const (
	methodOperator = "operator"
	methodInline   = "inline"
)

const (
	// FluxChartRepository holds Flux's community chart.
	FluxChartRepository = "https://fluxcd-community.github.io/helm-charts"
	// FluxOperatorRepository holds the Flux operator's chart.
	FluxOperatorRepository = "oci://ghcr.io/controlplaneio-fluxcd/charts"
	// FluxRegistry holds the controllers' images.
	FluxRegistry = "ghcr.io/fluxcd"
	// ArgoChartRepository holds Argo CD's chart.
	ArgoChartRepository = "https://argoproj.github.io/argo-helm"
)

// The names of the Helm releases; the names of what a chart makes begin with them.
const (
	fluxRelease         = "flux2"
	fluxOperatorRelease = "flux-operator"
	argoRelease         = "argocd"
)

// WithDefaults returns g with everything filled in that was left out, for the provider that g names.
func WithDefaults(clusterName string, g spec.GitOps) spec.GitOps {
	g = spec.Config{Cluster: spec.Cluster{Name: &clusterName}, GitOps: g}.WithDefaults().GitOps
	set := func(p **string, v string) {
		if *p == nil {
			*p = &v
		}
	}
	switch {
	case spec.Value(g.Provider) == ArgoCD:
		set(&g.Chart.Version, versions.ArgoChart)
	case IsOperator(g):
		set(&g.Chart.Version, versions.FluxOperator)
		set(&g.Version, versions.Flux)
	case spec.Value(g.Provider) == Flux:
		set(&g.Chart.Version, versions.FluxChart)
	}

	return g
}

// hasController reports whether the settings ask for a GitOps controller at all.
func hasController(g spec.GitOps) bool {
	provider := spec.Value(g.Provider)

	return provider == Flux || provider == ArgoCD
}

// IsOperator reports whether Flux is installed by the Flux operator.
func IsOperator(g spec.GitOps) bool {
	return spec.Value(g.Provider) == Flux && spec.Value(g.Method) == methodOperator
}

// AtDayZero reports whether Talos installs the controller at bootstrap.
func AtDayZero(g spec.GitOps) bool {
	switch spec.Value(g.Provider) {
	case ArgoCD:
		return spec.Value(g.DayZero)
	case Flux:
		return spec.Value(g.Method) == methodInline
	default:
		return false
	}
}

// Release returns the name of the Helm release that installs the controller.
func Release(g spec.GitOps) string {
	switch {
	case spec.Value(g.Provider) == ArgoCD:
		return argoRelease
	case IsOperator(g):
		return fluxOperatorRelease
	default:
		return fluxRelease
	}
}

// fluxControllers returns Flux's controllers and what the community chart calls them.
func fluxControllers() map[string]string {
	return map[string]string{
		"source-controller":           "sourceController",
		"kustomize-controller":        "kustomizeController",
		"helm-controller":             "helmController",
		"notification-controller":     "notificationController",
		"image-reflector-controller":  "imageReflectionController",
		"image-automation-controller": "imageAutomationController",
	}
}

// fluxValues returns the chart's values that follow from the settings.
func fluxValues(g spec.GitOps) map[string]any {
	values := map[string]any{}
	if IsOperator(g) {
		return values
	}
	// The kinds stay when the release goes: with them would go every object of theirs, and with those,
	// as long as a controller still runs, everything that they applied.
	values["crds"] = map[string]any{"annotations": map[string]any{"helm.sh/resource-policy": "keep"}}
	for component, key := range fluxControllers() {
		settings := map[string]any{}
		if len(g.Components) > 0 {
			settings["create"] = slices.Contains(g.Components, component)
		}
		if g.Registry != nil {
			settings["image"] = strings.TrimSuffix(*g.Registry, "/") + "/" + component
		}
		if len(settings) > 0 {
			values[key] = settings
		}
	}

	return values
}
