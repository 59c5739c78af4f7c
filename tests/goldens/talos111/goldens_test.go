// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package goldens_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/siderolabs/talos/pkg/machinery/config/configloader"
	"github.com/stretchr/testify/require"
)

// recorded is where the program keeps the configurations of this contract.
const recorded = "../../../internal/machineconfig/testdata/v1.11"

// installs is the mode in which an ISO installs Talos: the strictest one.
type installs struct{}

func (installs) String() string        { return "metal" }
func (installs) RequiresInstall() bool { return true }
func (installs) InContainer() bool     { return false }

func TestRecordedConfigurationsAreValid(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob(filepath.Join(recorded, "*.yaml"))
	require.NoError(t, err)
	require.Len(t, files, 4)
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			t.Parallel()
			text, err := os.ReadFile(file)
			require.NoError(t, err)
			config, err := configloader.NewFromBytes(text)
			require.NoError(t, err)
			_, err = config.Validate(installs{})
			require.NoError(t, err)
		})
	}
}

// TestKindsOfDocuments holds what the program believes about the age of kinds: what is younger than
// this release is unknown to it.
func TestKindsOfDocuments(t *testing.T) {
	t.Parallel()
	unknown := func(kind string) bool {
		_, err := configloader.NewFromBytes([]byte("apiVersion: v1alpha1\nkind: " + kind + "\n"))

		return err != nil && strings.Contains(err.Error(), "not registered")
	}
	for _, kind := range []string{
		"UserVolumeConfig",
		"RawVolumeConfig",
		"SwapVolumeConfig",
		"ExistingVolumeConfig",
		"ZswapConfig",
		"PCIDriverRebindConfig",
	} {
		require.False(t, unknown(kind), kind)
	}
	for _, kind := range []string{
		"HostnameConfig",
		"LinkConfig",
		"LinkAliasConfig",
		"Layer2VIPConfig",
		"ResolverConfig",
		"TimeSyncConfig",
		"StaticHostConfig",
		"OOMConfig",
		"RegistryMirrorConfig",
		"RegistryAuthConfig",
		"RegistryTLSConfig",
		"DHCPv4Config",
	} {
		require.True(t, unknown(kind), kind)
	}
}
