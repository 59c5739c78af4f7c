// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package components_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/talos-proxmox/talos-proxmox/internal/image"
	"github.com/talos-proxmox/talos-proxmox/spec"
)

// A program that names extensions must not lose them at the installation: nodes install what they boot.
func TestTalosClusterInstallsTheSchematicThatNodesBoot(t *testing.T) {
	t.Parallel()

	cfg := clusterConfig(1, 1)
	cfg.Images["gpu"] = spec.Image{Extensions: []string{"i915", "qemu-guest-agent"}}
	cfg.Nodes[1].Image = spec.Ptr("gpu")

	m, err := makeCluster(t, false, cfg)
	require.NoError(t, err)

	seen := map[string]bool{}
	for node, variant := range map[string]string{"ctrl-00": "default", "work-00": "gpu"} {
		schematic, err := image.Resolve(cfg.WithDefaults().Images[variant], "v1.12.4", nil)
		require.NoError(t, err)
		args, ok := m.Get("test-" + node)
		require.True(t, ok)
		assert.Contains(t, args.Inputs["machineConfigurationInput"].SecretValue().Element.StringValue(),
			"image: factory.talos.dev/nocloud-installer/"+schematic.ID+":v1.12.4")
		seen[schematic.ID] = true
	}
	assert.Len(t, seen, 2, "each variant is a schematic of its own")
}
