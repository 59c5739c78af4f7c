// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package components

import (
	"testing"

	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestWhatAChangeOfGitOpsMeans(t *testing.T) {
	t.Parallel()

	for _, c := range []struct{ was, is, says, refused string }{
		{"none", "none", "", ""},
		{"none", "flux/chart", "", ""},
		{"flux/chart", "flux/chart", "", ""},
		{"flux/chart", "none", "gitops is turned off: Flux goes, and everything that it applied keeps running. Its namespace ns and its objects stay there, without effect. A generated deploy key goes; the age key stays in the stack and opens what was encrypted for it when gitops is turned on again", ""},
		{"argocd/chart", "none", "gitops is turned off: Argo CD goes, and everything that it applied keeps running. Its namespace ns and its objects stay there, without effect. A generated deploy key goes; the age key stays in the stack and opens what was encrypted for it when gitops is turned on again", ""},
		{"flux/chart", "flux/operator", "gitops: Flux is installed anew, by another method (flux/operator after flux/chart); everything that it applied keeps running meanwhile", ""},
		{"flux/operator", "argocd/chart", "gitops: Flux gives way to Argo CD: everything that Flux applied keeps running, and Argo CD takes care of what it finds in git", ""},
		{"flux/inline", "none", "gitops is turned off: Flux, which Talos installed at day 0, keeps running and keeps what it applied; only its credentials go", ""},
		{"none", "flux/inline", "", "gitops: Flux at day 0 is for a cluster that is yet to be made: Talos applies such manifests at bootstrap. Choose gitops.method chart or operator, or gitops.dayZero false"},
		{"argocd/chart", "argocd/dayZero", "", "gitops: Argo CD at day 0 is for a cluster that is yet to be made: Talos applies such manifests at bootstrap. Choose gitops.method chart or operator, or gitops.dayZero false"},
		{"flux/inline", "flux/chart", "", "gitops: Talos installed Flux at day 0 and Helm does not take over what it has not installed: keep gitops as it was. Or set gitops.provider to none, remove Flux by its own tool, and choose again"},
	} {
		says, err := installed{c.was, "ns"}.becomes(installed{c.is, "ns"})
		if c.refused != "" {
			require.EqualError(t, err, c.refused, "%s to %s", c.was, c.is)

			continue
		}
		require.NoError(t, err)
		assert.Equal(t, c.says, says, "%s to %s", c.was, c.is)
	}
}

func TestWhatWasInstalledIsReadFromTheState(t *testing.T) {
	t.Parallel()

	input := resource.NewPropertyValue(map[string]any{"how": "flux/chart", "namespace": "flux-system"})
	for _, v := range []resource.PropertyValue{input, resource.MakeSecret(input)} {
		assert.Equal(t, installed{"flux/chart", "flux-system"}, installedIn(resource.PropertyMap{"input": v}))
	}
	assert.Equal(t, installed{how: "none"}, installedIn(resource.PropertyMap{}))
}
