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

	for name, c := range examples() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c.comesUpAndGoes(newSite(t))
		})
	}
}

// TestExamplesWithGenuinePlugins does the same with the providers' own plugins.
func TestExamplesWithGenuinePlugins(t *testing.T) {
	heavy(t)
	genuine(t)
	t.Parallel()

	for name, c := range examples() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSite(t)
			s.providers = "real"
			c.comesUpAndGoes(s)
		})
	}
}

// example holds what comes of a stack file in examples/.
type example struct {
	example string
	edits   []string // to the stack file, in pairs
	nodes   []string
	look    func(*running)
}

func examples() map[string]example {
	homelab := []string{
		"ctrl-00", "ctrl-01", "ctrl-02", "work-00", "work-01", "work-02", "work-03", "work-04",
	}

	return map[string]example{
		"homelab":       {example: "homelab", nodes: homelab, look: (*running).hasCiliumByJob},
		"homelab chart": {example: "homelab", edits: []string{"install: job", "install: chart"}, nodes: homelab, look: (*running).hasCiliumByChart},
		"cilium-argocd": {
			example: "cilium-argocd",
			nodes:   []string{"talos-cp-01", "talos-cp-02", "talos-cp-03", "talos-worker-01", "talos-worker-02"},
			look:    (*running).followsGitByArgo,
		},
	}
}

func (e example) comesUpAndGoes(s *site) {
	s.t.Helper()

	up := s.up(e.example, s.stackFile(filepath.Join("examples", e.example, "Pulumi."+e.example+".yaml"), e.edits...))
	up.hasNodes(e.nodes...)
	e.look(up)
	up.isSettled()
	up.destroy()
	assert.Empty(s.t, s.status().VMs)
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
	newSite(t).plansExamples()
}

// TestExamplesPreviewWithGenuinePlugins does the same with the providers' own plugins.
func TestExamplesPreviewWithGenuinePlugins(t *testing.T) {
	heavy(t)
	genuine(t)
	t.Parallel()

	s := newSite(t)
	s.providers = "real"
	s.plansExamples()
}

func (s *site) plansExamples() {
	s.t.Helper()

	files, err := filepath.Glob(filepath.Join(s.project, "examples", "*", "Pulumi.*.yaml"))
	require.NoError(s.t, err)
	require.NotEmpty(s.t, files)
	for _, file := range files {
		name := filepath.Base(filepath.Dir(file))
		s.create(name)
		plan := s.must("pulumi", "preview", "--stack", name, "--config-file", file, "--non-interactive").all()
		assert.NotContains(s.t, plan, "warning:", name)
		assert.NotContains(s.t, plan, "error:", name)
		assert.Contains(s.t, plan, "to create", name)
	}
}
