// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package tests_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

// TestKubernetesIsUpgradedOnThreeControlPlanes upgrades Kubernetes node by node. What Talos creates at bootstrap, and
// never changes by itself, follows, as with Talos's own command.
func TestKubernetesIsUpgradedOnThreeControlPlanes(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	c := s.up("small", s.small())
	image := func(kind, name string) string {
		return s.must("kubectl", "--kubeconfig", c.kubeconfig, "-n", "kube-system", "get", kind, name,
			"-o", "jsonpath={.spec.template.spec.containers[0].image}").stdout
	}
	brought := image("deployment", "coredns")
	s.must("kubectl", "--kubeconfig", c.kubeconfig, "-n", "kube-system", "set", "image", "deployment/coredns", "coredns=example.com/coredns:v0")

	started := time.Now()
	r := c.edit(s.small("version: v1.35.0", "version: v1.35.1"))
	assert.Contains(t, r.all(), "bootstrap manifests of Talos are applied")
	assert.Equal(t, brought, image("deployment", "coredns"))
	assert.Contains(t, image("daemonset", "kube-proxy"), ":v1.35.1")
	versions := s.must("kubectl", "--kubeconfig", c.kubeconfig, "get", "nodes", "-o", "jsonpath={.items[*].status.nodeInfo.kubeletVersion}").stdout
	assert.Equal(t, "v1.35.1 v1.35.1 v1.35.1", versions)
	assert.Empty(t, s.trace(started).gateProblems(1))
	c.isSettled()
}
