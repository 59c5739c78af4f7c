// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package tests_test

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestExamplesComeUpAndGo runs what examples/ offers: everything comes up, stays as it is, and goes.
func TestExamplesComeUpAndGo(t *testing.T) {
	heavy(t)
	t.Parallel()

	homelab := []string{
		"ctrl-00", "ctrl-01", "ctrl-02", "work-00", "work-01", "work-02", "work-03", "work-04",
	}
	for name, c := range map[string]struct {
		example string
		edits   []string
		nodes   []string
		look    func(*running)
	}{
		"homelab":       {example: "homelab", nodes: homelab, look: (*running).hasCiliumByJob},
		"homelab chart": {example: "homelab", edits: []string{"install: job", "install: chart"}, nodes: homelab, look: (*running).hasCiliumByChart},
		"cilium-argocd": {
			example: "cilium-argocd",
			nodes:   []string{"talos-cp-01", "talos-cp-02", "talos-cp-03", "talos-worker-01", "talos-worker-02"},
			look:    (*running).followsGitByArgo,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSite(t)

			up := s.up(c.example, s.stackFile(filepath.Join("examples", c.example, "Pulumi."+c.example+".yaml"), c.edits...))
			up.hasNodes(c.nodes...)
			c.look(up)
			up.isSettled()
			up.destroy()
			assert.Empty(t, s.status().VMs)
		})
	}
}

// hasCiliumByJob asserts that the Job has installed Cilium's chart with the stack's values, as Helm does.
func (r *running) hasCiliumByJob() {
	r.t.Helper()

	assert.Equal(r.t, "1", r.field("job", "kube-system", "cilium-install", "{.status.succeeded}"))
	assert.Equal(r.t, "Helm", r.field("daemonset", "kube-system", "cilium", `{.metadata.labels.app\.kubernetes\.io/managed-by}`))
	assert.Equal(r.t, "cilium", r.field("daemonset", "kube-system", "cilium", `{.metadata.annotations.meta\.helm\.sh/release-name}`))
	r.runsCilium()
}

// hasCiliumByChart asserts that Talos has made what Cilium's chart renders, without Helm.
func (r *running) hasCiliumByChart() {
	r.t.Helper()

	_, found := r.tryField("job", "kube-system", "cilium-install", "{.status}")
	assert.False(r.t, found)
	_, found = r.tryField("daemonset", "kube-system", "cilium", `{.metadata.annotations.meta\.helm\.sh/release-name}`)
	assert.False(r.t, found)
	r.runsCilium()
}

// runsCilium asserts that Cilium's agent is on every node, and set up as the stack says.
func (r *running) runsCilium() {
	r.t.Helper()

	r.eventually("8", "daemonset", "kube-system", "cilium", "{.status.numberReady}")
	assert.Contains(r.t, r.field("daemonset", "kube-system", "cilium", "{.spec.template.spec.containers[0].image}"), ":v1.18.4")
	assert.Equal(r.t, "1", r.field("deployment", "kube-system", "cilium-operator", "{.spec.replicas}"))
	assert.Equal(r.t, "true", r.field("configmap", "kube-system", "cilium-config", `{.data.kube-proxy-replacement}`))
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
