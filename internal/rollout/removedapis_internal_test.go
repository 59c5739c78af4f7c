// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package rollout

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/talos-proxmox/talos-proxmox/internal/versions"
)

func TestRemovedAPIsThatWereAskedFor(t *testing.T) {
	t.Parallel()

	metrics := []byte(`# HELP apiserver_requested_deprecated_apis [STABLE] Gauge of deprecated APIs that have been requested
# TYPE apiserver_requested_deprecated_apis gauge
apiserver_requested_deprecated_apis{group="flowcontrol.apiserver.k8s.io",removed_release="1.32",resource="flowschemas",subresource="status",version="v1beta3"} 1
apiserver_requested_deprecated_apis{group="later.example",removed_release="1.40",resource="things",subresource="",version="v1beta1"} 1
apiserver_requested_deprecated_apis{group="old.example",removed_release="1.31",resource="quiet",subresource="",version="v1"} 0
apiserver_requested_deprecated_apis{group="",removed_release="",resource="endpoints",subresource="",version="v1"} 1
`)
	to, err := versions.ParseKubernetes("v1.32.4")
	require.NoError(t, err)

	assert.Equal(t, []string{"flowschemas/status of flowcontrol.apiserver.k8s.io/v1beta3 was requested, " +
		"which Kubernetes 1.32 no longer serves: move its users to a newer version"}, removedAPIs(metrics, to))
	before, err := versions.ParseKubernetes("v1.31.9")
	require.NoError(t, err)
	assert.Empty(t, removedAPIs(metrics, before))
}
