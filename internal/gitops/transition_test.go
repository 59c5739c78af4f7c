// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package gitops_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/talos-proxmox/talos-proxmox/internal/gitops"
	"github.com/talos-proxmox/talos-proxmox/spec"
)

func TestBecomes(t *testing.T) {
	t.Parallel()

	for _, c := range []struct{ was, is, says, refused string }{
		{"none", "none", "", ""},
		{"none", "flux/chart", "", ""},
		{"flux/chart", "flux/chart", "", ""},
		{"flux/chart", "none", "gitops is turned off: Flux goes, and everything that it applied keeps running. Its namespace ns and its objects stay there, without effect. A generated deploy key goes; the age key stays in the stack and opens what was encrypted for it when gitops is turned on again", ""},
		{"argocd/chart", "none", "gitops is turned off: Argo CD goes, and everything that it applied keeps running. Its namespace ns and its objects stay there, without effect. A generated deploy key goes; the age key stays in the stack and opens what was encrypted for it when gitops is turned on again", ""},
		{"flux/chart", "flux/operator", "gitops: Flux is reinstalled by another method (flux/operator after flux/chart); everything that it applied keeps running meanwhile", ""},
		{"flux/operator", "argocd/chart", "gitops: Flux gives way to Argo CD: everything that Flux applied keeps running, and Argo CD takes care of what it finds in git", ""},
		{"flux/inline", "none", "gitops is turned off: Flux, which Talos installed at day 0, keeps running and keeps what it applied; only its credentials go", ""},
		{"none", "flux/inline", "", "gitops: Flux at day 0 is for a cluster that is yet to be made: Talos applies such manifests at bootstrap. Choose gitops.method chart or operator, or gitops.dayZero false"},
		{"argocd/chart", "argocd/dayZero", "", "gitops: Argo CD at day 0 is for a cluster that is yet to be made: Talos applies such manifests at bootstrap. Choose gitops.method chart or operator, or gitops.dayZero false"},
		{"flux/inline", "flux/chart", "", "gitops: Talos installed Flux at day 0 and Helm does not take over what it has not installed: keep gitops as it was. Or set gitops.provider to none, remove Flux by its own tool, and choose again"},
	} {
		says, err := gitops.Installed{How: c.was, Namespace: "ns"}.Becomes(gitops.Installed{How: c.is, Namespace: "ns"})
		if c.refused != "" {
			require.EqualError(t, err, c.refused, "%s to %s", c.was, c.is)

			continue
		}
		require.NoError(t, err)
		assert.Equal(t, c.says, says, "%s to %s", c.was, c.is)
	}
}

func TestInstalledBy(t *testing.T) {
	t.Parallel()

	for want, g := range map[string]spec.GitOps{
		"none":           {},
		"flux/chart":     {Provider: spec.Ptr("flux")},
		"flux/operator":  {Provider: spec.Ptr("flux"), Method: spec.Ptr("operator")},
		"flux/inline":    {Provider: spec.Ptr("flux"), Method: spec.Ptr("inline")},
		"argocd/chart":   {Provider: spec.Ptr("argocd")},
		"argocd/dayZero": {Provider: spec.Ptr("argocd"), DayZero: spec.Ptr(true)},
	} {
		assert.Equal(t, want, gitops.InstalledBy(gitops.WithDefaults("one", g)).How)
	}
}

func TestLosesOperator(t *testing.T) {
	t.Parallel()

	operator, chart := gitops.Installed{How: "flux/operator"}, gitops.Installed{How: "flux/chart"}
	assert.True(t, operator.LosesOperator(chart))
	assert.False(t, chart.LosesOperator(operator))
	assert.False(t, operator.LosesOperator(gitops.Installed{How: "argocd/chart"}))
}
