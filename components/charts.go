// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package components

import (
	"context"
	"fmt"

	"github.com/talos-proxmox/talos-proxmox/internal/manifests"
	"github.com/talos-proxmox/talos-proxmox/spec"
)

// ChartCache keeps chart archives, so that a plan fetches none twice; [ProjectCharts] makes one.
type ChartCache = manifests.Cache

// ProjectCharts is the chart cache of the project in a directory, the one that has Pulumi.yaml: its
// .cache/charts, or the directory that TALOS_PROXMOX_CHART_CACHE names. An archive that is missing is
// fetched from its repository, through the proxy that the usual environment variables name.
func ProjectCharts(dir string) ChartCache { return manifests.ProjectCache(dir, manifests.Fetch) }

// GitOpsChart is the chart that the GitOps controller is installed from when the cluster is ready;
// false where there is no controller, or Talos installs it at day 0.
func GitOpsChart(cfg spec.Config) (spec.Chart, bool) {
	g := cfg.GitOps
	switch provider := spec.Or(g.Provider, "none"); {
	case provider == "none" || atDayZero(g):
		return spec.Chart{}, false
	case provider == argoProvider:
		return withArgoDefaults(spec.Or(cfg.Cluster.Name, ""), g).Chart, true
	default:
		return withFluxDefaults(spec.Or(cfg.Cluster.Name, ""), g).Chart, true
	}
}

// CheckGitOps finds the chart of the GitOps controller, and whether it may be installed in the cluster's
// version of Kubernetes, before anything is registered: it would be missed only when the cluster is up.
func CheckGitOps(ctx context.Context, cfg spec.Config, charts ChartCache) error {
	chart, ok := GitOpsChart(cfg)
	if !ok {
		return nil
	}
	loaded, err := charts.Load(ctx, chart)
	if err != nil {
		return fmt.Errorf("gitops.chart: %w", err)
	}
	version := spec.Or(cfg.Kubernetes.Version, "")
	if version == "" {
		return nil
	}
	if err := manifests.FitsKubernetes(loaded, version); err != nil {
		return fmt.Errorf("gitops.chart: %s %s: %w", loaded.Name(), loaded.Metadata.Version, err)
	}

	return nil
}
