// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package components

import (
	"context"

	"github.com/talos-proxmox/talos-proxmox/internal/gitops"
	"github.com/talos-proxmox/talos-proxmox/internal/manifests"
	"github.com/talos-proxmox/talos-proxmox/spec"
)

// ChartCache keeps chart archives, so that a plan fetches none twice. [ProjectCharts] and [NewChartCache]
// make one; the zero value keeps nothing.
type ChartCache struct{ cache manifests.Cache }

// ProjectCharts returns the chart cache of the project in a directory, the one that has Pulumi.yaml: its
// .cache/charts, or the directory that TALOS_PROXMOX_CHART_CACHE names. An archive that is missing is fetched
// from its repository, through the proxy that the usual environment variables name.
func ProjectCharts(dir string) ChartCache {
	return ChartCache{manifests.ProjectCache(dir, manifests.Fetch)}
}

// NewChartCache returns a cache in a directory, for a project in another, that gets missing archives with
// fetch.
func NewChartCache(dir, projectDir string, fetch func(context.Context, spec.Chart) ([]byte, error)) ChartCache {
	return ChartCache{manifests.Cache{Dir: dir, ProjectDir: projectDir, Fetch: fetch}}
}

// AddGitOpsDayZero adds the GitOps controller to the manifests that Talos applies at bootstrap, where the
// settings ask for that (Flux's method inline, Argo CD's dayZero). Pass what it returns to [NewTalosCluster];
// [NewCluster] does so itself. Any other configuration comes back as it is.
func AddGitOpsDayZero(cfg spec.Config) (spec.Config, error) {
	return gitops.DayZero(cfg)
}
