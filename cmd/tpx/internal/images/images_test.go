// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package images

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/talos-proxmox/talos-proxmox/cmd/tpx/internal/pulumi"
	"github.com/talos-proxmox/talos-proxmox/internal/airgap"
	"github.com/talos-proxmox/talos-proxmox/internal/manifests"
	"github.com/talos-proxmox/talos-proxmox/spec"
)

// labCharts takes archives from those that the lab serves.
func labCharts(t *testing.T) manifests.Cache {
	t.Helper()
	built := filepath.Join("..", "..", "..", "..", "bin", "charts")
	if _, err := os.Stat(built); err != nil {
		t.Skip("NOT TESTED: the lab's charts are not built: run make tools")
	}

	return manifests.Cache{Dir: t.TempDir(), Fetch: func(_ context.Context, ch spec.Chart) ([]byte, error) {
		_, place, _ := strings.Cut(*ch.Repository, "://")

		return os.ReadFile(filepath.Join(built, place, *ch.Name+"-"+*ch.Version+".tgz"))
	}}
}

func TestProductionPullsThroughItsMirrors(t *testing.T) {
	t.Parallel()
	project, err := pulumi.FindProject(".")
	require.NoError(t, err)
	pulls, notes, err := List(t.Context(), project, pulumi.CLI{Stack: "prod"}, labCharts(t))
	require.NoError(t, err)
	from := map[string][]string{}
	for _, p := range pulls {
		if p.Outside {
			from[p.By] = append(from[p.By], p.From)
		}
	}
	assert.Empty(t, from[airgap.Node], "nodes")
	assert.Empty(t, from[airgap.Host], "Proxmox hosts")
	assert.Equal(t, []string{"https://github.com/your-org/applications.git"}, from[airgap.Cluster])
	assert.Equal(t, []string{"the images that the repository's own workloads name are not known here"}, notes)

	names := map[string]bool{}
	for _, p := range pulls {
		names[p.From] = true
	}
	assert.True(t, names["harbor.example.com/k8s/etcd:v3.6.7"], "etcd through its mirror")
	assert.False(t, names["harbor.example.com/gh/siderolabs/flannel:v0.27.4"], "no flannel beside Cilium")
}

func TestAStackWithoutFileIsNamed(t *testing.T) {
	t.Parallel()
	project := pulumi.Project{Dir: t.TempDir(), Name: "mine"}
	err := Run(t.Context(), project, pulumi.CLI{Stack: "gone"}, false, &bytes.Buffer{})
	assert.ErrorIs(t, err, os.ErrNotExist)
}
