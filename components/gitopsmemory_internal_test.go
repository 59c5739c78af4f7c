// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package components

import (
	"testing"

	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	"github.com/stretchr/testify/assert"

	"github.com/talos-proxmox/talos-proxmox/internal/gitops"
)

func TestWhatWasInstalledIsReadFromTheState(t *testing.T) {
	t.Parallel()

	input := resource.NewPropertyValue(map[string]any{"how": "flux/chart", "namespace": "flux-system"})
	for _, v := range []resource.PropertyValue{input, resource.MakeSecret(input)} {
		assert.Equal(t, gitops.Installed{How: "flux/chart", Namespace: "flux-system"}, installedIn(resource.PropertyMap{"input": v}))
	}
	assert.Equal(t, gitops.Installed{How: "none"}, installedIn(resource.PropertyMap{}))
}
