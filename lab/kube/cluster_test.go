// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package kube_test

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestClusterStarts(t *testing.T) {
	t.Parallel()

	c := start(t, config(t))
	version, err := c.Discovery().ServerVersion()
	require.NoError(t, err)
	require.Equal(t, "v1.35.0", version.GitVersion)
	t.Log(c.Addr())
}
