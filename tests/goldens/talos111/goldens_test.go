// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package goldens_test

import (
	"os"
	"path/filepath"
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
