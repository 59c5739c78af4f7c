// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package stackfile

import (
	"maps"
	"slices"

	"github.com/talos-proxmox/talos-proxmox/internal/gitops"
	"github.com/talos-proxmox/talos-proxmox/internal/manifests"
	"github.com/talos-proxmox/talos-proxmox/spec"
)

// Cache returns the project's chart cache, which is filled from the network.
func Cache(dir string) manifests.Cache { return manifests.ProjectCache(dir, manifests.Fetch) }

// Releases returns the charts that the program installs once the cluster is ready, by name of the
// release: the GitOps controller's.
func Releases(cfg spec.Config) map[string]spec.DayZeroChart {
	chart, ok := gitops.Chart(cfg)
	if !ok {
		return nil
	}

	return map[string]spec.DayZeroChart{spec.Value(chart.Name): {Chart: chart, Namespace: cfg.GitOps.Namespace}}
}

// Charts returns all charts of a stack: the pod network's, those of day 0 and those of later releases.
func Charts(cfg spec.Config) []spec.Chart {
	var all []spec.Chart
	if cfg.UsesCilium() && spec.Value(spec.Value(cfg.CNI.Cilium).Install) == "chart" {
		all = append(all, manifests.CiliumChart(cfg))
	}
	for _, charts := range []map[string]spec.DayZeroChart{cfg.Manifests.Charts, Releases(cfg)} {
		for _, name := range slices.Sorted(maps.Keys(charts)) {
			all = append(all, charts[name].Chart)
		}
	}

	return all
}
