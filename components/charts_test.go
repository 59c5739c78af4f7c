// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package components_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chartutil"

	"github.com/talos-proxmox/talos-proxmox/components"
	"github.com/talos-proxmox/talos-proxmox/internal/gitops"
	"github.com/talos-proxmox/talos-proxmox/internal/manifests"
	"github.com/talos-proxmox/talos-proxmox/internal/pulumitest"
	"github.com/talos-proxmox/talos-proxmox/internal/versions"
	"github.com/talos-proxmox/talos-proxmox/spec"
)

// oneChart returns a cache in a project of its own that can fetch the community's Flux chart, once.
func oneChart(t *testing.T) components.ChartCache {
	t.Helper()
	fetched := false
	dir := t.TempDir()

	return components.NewChartCache(filepath.Join(dir, ".cache", "charts"), dir, func(_ context.Context, ch spec.Chart) ([]byte, error) {
		if fetched {
			return nil, errors.New("asked twice")
		}
		fetched = true
		path, err := chartutil.Save(&chart.Chart{Metadata: &chart.Metadata{APIVersion: "v2", Name: *ch.Name, Version: *ch.Version}}, t.TempDir())
		require.NoError(t, err)

		return os.ReadFile(path)
	})
}

func TestChartIsFetchedOnceForAllPlans(t *testing.T) {
	t.Parallel()

	charts := oneChart(t)
	g := sshGitOps()
	g.Chart.Username, g.Chart.Password = spec.Ptr("robot"), spec.Ptr(spec.NewSecret("hunter2"))
	for _, preview := range []bool{true, false} {
		m := &made{Recorder: &pulumitest.Recorder{State: talosState(t, preview)}, outputs: map[string]string{}}
		require.NoError(t, m.Run(preview, func(ctx *pulumi.Context) error {
			_, err := components.NewFluxBootstrap(ctx, "flux", &components.FluxBootstrapArgs{
				ClusterName: "test", Kubeconfig: pulumi.String("the kubeconfig"), GitOps: g, Charts: charts,
			})

			return err
		}))

		release, ok := m.Get("flux-release")
		require.True(t, ok)
		assert.Regexp(t, `^\./\.cache/charts/flux2-`, release.Inputs["chart"].StringValue())
		assert.NotContains(t, release.Inputs, "repositoryOpts", "the provider has nothing to ask a repository for")
	}
}

func TestMissingGitOpsChartIsToldBeforeAnythingIsRegistered(t *testing.T) {
	t.Parallel()

	cfg := spec.Config{Cluster: spec.Cluster{Name: spec.Ptr("test")}, GitOps: sshGitOps()}
	cfg.GitOps.Provider = spec.Ptr("flux")
	assert.ErrorContains(t, gitops.CheckChart(context.Background(), cfg, manifests.Cache{Dir: t.TempDir()}),
		"gitops.chart: chart flux2 "+versions.FluxChart+" of https://fluxcd-community.github.io/helm-charts is not in the cache: run `tpx charts`")

	cfg.GitOps.Provider = spec.Ptr("none")
	assert.NoError(t, gitops.CheckChart(context.Background(), cfg, manifests.Cache{}))
}

func TestGitOpsChartForAnotherKubernetesIsRefused(t *testing.T) {
	t.Parallel()

	cfg := spec.Config{
		Cluster: spec.Cluster{Name: spec.Ptr("test")}, GitOps: sshGitOps(), Kubernetes: spec.Kubernetes{Version: spec.Ptr("v1.33.2")},
	}
	cfg.GitOps.Provider = spec.Ptr("flux")
	charts := manifests.Cache{Dir: t.TempDir()}
	charts.Fetch = func(_ context.Context, ch spec.Chart) ([]byte, error) {
		path, err := chartutil.Save(&chart.Chart{Metadata: &chart.Metadata{
			APIVersion: "v2", Name: *ch.Name, Version: *ch.Version, KubeVersion: ">=1.34.0-0",
		}}, t.TempDir())
		require.NoError(t, err)

		return os.ReadFile(path)
	}
	assert.EqualError(t, gitops.CheckChart(context.Background(), cfg, charts),
		"gitops.chart: flux2 "+versions.FluxChart+": the chart wants Kubernetes >=1.34.0-0, and the cluster has v1.33.2: "+
			"choose a version of the chart that fits, or another kubernetes.version")
	cfg.Kubernetes.Version = spec.Ptr("v1.34.0")
	assert.NoError(t, gitops.CheckChart(context.Background(), cfg, charts))
}
