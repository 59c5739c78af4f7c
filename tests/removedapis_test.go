// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package tests_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

// TestRemovedAPIsAreWarnedOf asks a cluster for an API that the next minor version of Kubernetes has no
// more, and upgrades to that version.
func TestRemovedAPIsAreWarnedOf(t *testing.T) {
	heavy(t)
	t.Parallel()
	s := newSite(t)
	at := func(version string) string {
		return s.small(alone("version: v1.35.0",
			"version: "+version+"\n    apiServer: {extraArgs: {runtime-config: admissionregistration.k8s.io/v1beta1=true}}")...)
	}
	one := s.up("small", at("v1.33.4"))
	s.must("kubectl", "--kubeconfig", one.kubeconfig, "get", "validatingadmissionpolicies.v1beta1.admissionregistration.k8s.io")

	up := s.must("pulumi", "up", "--stack", "small", "--config-file", at("v1.34.1"), "--yes", "--skip-preview", "--non-interactive")
	assert.Contains(t, up.all(), "warning: validatingadmissionpolicies of admissionregistration.k8s.io/v1beta1 was requested, "+
		"which Kubernetes 1.34 no longer serves: move its users to a newer version")
	one.file = at("v1.34.1")
	one.isSettled()
}
