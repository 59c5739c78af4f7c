// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package components

import (
	"context"

	"github.com/talos-proxmox/talos-proxmox/internal/gitops"
	"github.com/talos-proxmox/talos-proxmox/internal/manifests"
	"github.com/talos-proxmox/talos-proxmox/spec"
)

// ChartCache keeps chart archives, so that a plan fetches none twice; [ProjectCharts] makes one.
type ChartCache = manifests.Cache

// ProjectCharts is the chart cache of the project in a directory, the one that has Pulumi.yaml: its
// .cache/charts, or the directory that TALOS_PROXMOX_CHART_CACHE names. An archive that is missing is
// fetched from its repository, through the proxy that the usual environment variables name.
func ProjectCharts(dir string) ChartCache { return manifests.ProjectCache(dir, manifests.Fetch) }

// CheckGitOps finds the chart of the GitOps controller, and whether it may be installed in the cluster's
// version of Kubernetes, before anything is registered: it would be missed only when the cluster is up.
func CheckGitOps(ctx context.Context, cfg spec.Config, charts ChartCache) error {
	return gitops.CheckChart(ctx, cfg, charts) //nolint:wrapcheck // names the setting
}
