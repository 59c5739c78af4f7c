// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

// Package check holds recorded machine configurations against the Talos machinery of the module that
// runs it, which is another than the program's own.
package check

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/siderolabs/talos/pkg/machinery/config/configloader"
	"github.com/stretchr/testify/require"
)

// installs tells Talos's validation that an ISO installs Talos: the strictest mode.
type installs struct{}

func (installs) String() string        { return "metal" }
func (installs) RequiresInstall() bool { return true }
func (installs) InContainer() bool     { return false }

// Recorded demands that every configuration of the contract, as the program keeps them, is valid.
func Recorded(t *testing.T, contract string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("../../../internal/machineconfig/testdata", contract, "*.yaml"))
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

// Kinds holds what the program believes about the age of kinds of documents: what is younger than this
// release is unknown to it.
func Kinds(t *testing.T, known, younger []string) {
	t.Helper()
	unknown := func(kind string) bool {
		_, err := configloader.NewFromBytes([]byte("apiVersion: v1alpha1\nkind: " + kind + "\n"))

		return err != nil && strings.Contains(err.Error(), "not registered")
	}
	for _, kind := range known {
		require.False(t, unknown(kind), kind)
	}
	for _, kind := range younger {
		require.True(t, unknown(kind), kind)
	}
}
