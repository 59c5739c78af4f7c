// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package manifests_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/talos-proxmox/talos-proxmox/internal/manifests"
)

func TestARunRendersAChartOnce(t *testing.T) {
	t.Parallel()
	in := input(t, clusterConfig(withCilium(t, nil)))
	in.Renders = &manifests.Renders{}

	first := dayZero(t, in)
	assert.Equal(t, first, dayZero(t, in))
	assert.Equal(t, 1, in.Renders.Count("cilium"), "the check and the configurations of a new cluster have the same certificates")

	others, err := manifests.NewCertificates("test", time.Now())
	require.NoError(t, err)
	in.Certificates = &others
	assert.NotEqual(t, first, dayZero(t, in))
	assert.Equal(t, 2, in.Renders.Count("cilium"), "those of the state are known later")
}
