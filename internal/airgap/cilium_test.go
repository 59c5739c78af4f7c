// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package airgap_test

import (
	"context"
	"os"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chartutil"

	"github.com/talos-proxmox/talos-proxmox/internal/airgap"
	"github.com/talos-proxmox/talos-proxmox/internal/manifests"
	"github.com/talos-proxmox/talos-proxmox/spec"
)

// TestListOfWhatCiliumsJobBrings has no manifest with Cilium's images: a Job installs them.
func TestListOfWhatCiliumsJobBrings(t *testing.T) {
	t.Parallel()
	fetch := func(context.Context, spec.Chart) ([]byte, error) {
		file, err := chartutil.Save(&chart.Chart{
			Metadata:  &chart.Metadata{APIVersion: chart.APIVersionV2, Name: "cilium", Version: "1.18.4"},
			Templates: []*chart.File{{Name: "templates/agent.yaml", Data: []byte(deployment)}},
		}, t.TempDir())
		if err != nil {
			return nil, err
		}

		return os.ReadFile(file)
	}
	cfg := cluster(func(c *spec.Config) {
		c.CNI = spec.CNI{Name: spec.Ptr("cilium"), Cilium: &spec.Cilium{
			Install: spec.Ptr("job"), Chart: spec.Chart{Version: spec.Ptr("1.18.4")},
		}}
	})

	pulls, _, err := airgap.List(t.Context(), airgap.Input{Config: cfg, Charts: manifests.Cache{Dir: t.TempDir(), Fetch: fetch}})
	require.NoError(t, err)
	found := lines(pulls)
	assert.Contains(t, found, "node quay.io/org/app:v1 outside")
	assert.Contains(t, found, "cluster https://helm.cilium.io outside", "the Job fetches the chart, not the program")
	assert.NotContains(t, found, "program https://helm.cilium.io outside")
}
