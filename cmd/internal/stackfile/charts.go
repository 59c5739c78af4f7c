// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package stackfile

import (
	"maps"
	"path/filepath"
	"slices"

	"github.com/talos-proxmox/talos-proxmox/components"
	"github.com/talos-proxmox/talos-proxmox/internal/manifests"
	"github.com/talos-proxmox/talos-proxmox/spec"
)

// Cache is the project's chart cache; fetch says whether it may be filled from the network.
func Cache(dir string, fetch bool) manifests.Cache {
	cache := manifests.Cache{Dir: filepath.Join(dir, manifests.DefaultCacheDir), ProjectDir: dir}
	if fetch {
		cache.Fetch = manifests.Fetch
	}

	return cache
}

// Releases are the charts that the program installs once the cluster is ready, by name of the
// release: the GitOps controller's.
func Releases(cfg spec.Config) map[string]spec.DayZeroChart {
	g := cfg.GitOps
	if spec.Or(g.Provider, "none") == "argocd" && !spec.Or(g.DayZero, false) {
		// The stack says which chart: its rules and defaults see to that.
		return map[string]spec.DayZeroChart{"argocd": {Chart: g.Chart, Namespace: g.Namespace}}
	}
	if spec.Or(g.Provider, "none") != "flux" || spec.Or(g.Method, "chart") == "inline" {
		return nil
	}
	chart := g.Chart
	set := func(p **string, v string) {
		if *p == nil {
			*p = &v
		}
	}
	name := "flux2"
	if spec.Or(g.Method, "chart") == "operator" {
		name = "flux-operator"
		set(&chart.Repository, components.FluxOperatorRepository)
		set(&chart.Version, components.FluxOperatorVersion)
	} else {
		set(&chart.Repository, components.FluxChartRepository)
		set(&chart.Version, components.FluxChartVersion)
	}
	set(&chart.Name, name)

	return map[string]spec.DayZeroChart{name: {Chart: chart, Namespace: g.Namespace}}
}

// Charts are all charts of a stack: the pod network's, those of day 0 and those of later releases.
func Charts(cfg spec.Config) []spec.Chart {
	var all []spec.Chart
	if cfg.UsesCilium() && spec.Or(spec.Or(cfg.CNI.Cilium, spec.Cilium{}).Install, "chart") == "chart" {
		all = append(all, manifests.CiliumChart(cfg))
	}
	for _, charts := range []map[string]spec.DayZeroChart{cfg.Manifests.Charts, Releases(cfg)} {
		for _, name := range slices.Sorted(maps.Keys(charts)) {
			all = append(all, charts[name].Chart)
		}
	}

	return all
}
