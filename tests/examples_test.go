// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package tests_test

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestExamplesComeUpAndGo runs what examples/ offers: everything comes up, stays as it is, and goes. The
// example homelab is not among them: the Job that installs its Cilium runs nothing in the lab.
func TestExamplesComeUpAndGo(t *testing.T) {
	heavy(t)
	t.Parallel()

	for name, c := range map[string]struct {
		nodes []string
		look  func(*running)
	}{
		"cilium-argocd": {
			nodes: []string{"talos-cp-01", "talos-cp-02", "talos-cp-03", "talos-worker-01", "talos-worker-02"},
			look:  (*running).followsGitByArgo,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSite(t)

			up := s.up(name, s.stackFile(filepath.Join("examples", name, "Pulumi."+name+".yaml")))
			up.hasNodes(c.nodes...)
			c.look(up)
			up.isSettled()
			up.destroy()
			assert.Empty(t, s.status().VMs)
		})
	}
}

// followsGitByArgo asserts that Argo CD is installed and has the repository and the path to follow.
func (r *running) followsGitByArgo() {
	r.t.Helper()

	git := r.fileKey("talos-proxmox:gitops", "git")
	var applications objects
	r.kubectl(&applications, "get", "applications.argoproj.io", "-n", "argocd")
	require.Len(r.t, applications.Items, 1)
	assert.Equal(r.t, "talos-proxmox-cluster", applications.Items[0].Metadata.Name)
	source, ok := applications.Items[0].Spec["source"].(map[string]any)
	require.True(r.t, ok)
	assert.Equal(r.t, git["url"], source["repoURL"])
	assert.Equal(r.t, git["path"], source["path"])
	assert.Equal(r.t, "60s", r.field("configmap", "argocd", "argocd-cm", `{.data.timeout\.reconciliation}`))

	var deployments objects
	r.kubectl(&deployments, "get", "deployments", "-A")
	found := map[string]bool{}
	for _, d := range deployments.Items {
		found[d.Metadata.Namespace+"/"+d.Metadata.Name] = true
	}
	for _, want := range []string{"argocd/argocd-server", "cert-manager/cert-manager", "traefik/traefik"} {
		assert.Truef(r.t, found[want], "%s is there: %v", want, found)
	}
}

// TestExamplesPreview plans every example: none is refused, and none is warned of.
func TestExamplesPreview(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	files, err := filepath.Glob(filepath.Join(s.project, "examples", "*", "Pulumi.*.yaml"))
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		name := filepath.Base(filepath.Dir(file))
		s.create(name)
		plan := s.must("pulumi", "preview", "--stack", name, "--config-file", file, "--non-interactive").all()
		assert.NotContains(t, plan, "warning:", name)
		assert.Contains(t, plan, "to create", name)
	}
}
