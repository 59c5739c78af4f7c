// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package tests_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

// TestAnotherWayOfFollowingGit goes from one way of installing Flux to the other and back, and on to
// Argo CD: each run ends, says beforehand what stays, and leaves what stands for workloads in place.
func TestAnotherWayOfFollowingGit(t *testing.T) {
	heavy(t)
	t.Parallel()
	s := newSite(t)
	s.newRepository()
	up := s.up("git", s.gitOpsFile("git"))

	edit(t, up.file, "method: chart", "method: inline")
	refused := s.try("pulumi", "preview", "--stack", "git", "--config-file", up.file, "--non-interactive")
	assert.NotZero(t, refused.code)
	assert.Contains(t, refused.all(), "Flux at day 0 is for a cluster that is yet to be made")

	edit(t, up.file, "method: inline", "method: operator", "chart: {version: 2.18.2}", "chart: {version: 0.58.1}")
	assert.Contains(t, up.preview().all(), "Flux is reinstalled by another method (flux/operator after flux/chart)")
	up.again()
	up.hasKustomization("flux-system")
	var instances objects
	up.kubectl(&instances, "get", "fluxinstances.fluxcd.controlplane.io", "-A")
	assert.Len(t, instances.Items, 1)
	up.isSettled()

	edit(t, up.file, "method: operator", "method: chart", "chart: {version: 0.58.1}", "chart: {version: 2.18.2}")
	up.again()
	up.hasKustomization("flux-system")
	up.kubectl(&instances, "get", "fluxinstances.fluxcd.controlplane.io", "-A")
	assert.Empty(t, instances.Items, "the operator took its Flux away")
	up.isSettled()

	edit(t, up.file, "provider: flux", "provider: argocd", "    method: chart\n", "", "    sops: {}\n", "",
		"chart: {version: 2.18.2}", "chart: {version: 8.2.5}")
	assert.Contains(t, up.preview().all(), "Flux gives way to Argo CD")
	up.again()
	up.hasKustomization("flux-system")
	var applications objects
	up.kubectl(&applications, "get", "applications.argoproj.io", "-n", "argocd")
	assert.Len(t, applications.Items, 1)
	assert.Len(t, s.deployKeys(), 1, "the key is another controller's now")
	up.isSettled()
	up.destroy()
}
