// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package tests_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

// TestEveryMinor takes a cluster of one node from the oldest minors to the newest: every Talos and back again where
// a minor can be taken back, every Kubernetes in between. Its configuration keeps the forms in which it was created.
func TestEveryMinor(t *testing.T) {
	heavy(t)
	t.Parallel()
	s := newSite(t)
	at := func(talos, kubernetes string) string {
		return s.small(alone("version: v1.12.4", "version: "+talos, "version: v1.35.0", "version: "+kubernetes)...)
	}
	one := s.up("small", at("v1.11.6", "v1.31.14"))
	for _, step := range [][2]string{
		{"v1.11.6", "v1.32.13"}, {"v1.11.6", "v1.33.9"}, {"v1.11.6", "v1.34.5"},
		{"v1.12.4", "v1.34.5"}, {"v1.11.6", "v1.34.5"}, {"v1.12.4", "v1.34.5"}, {"v1.12.4", "v1.35.0"},
		{"v1.13.9", "v1.35.0"}, {"v1.12.4", "v1.35.0"}, {"v1.13.9", "v1.35.0"}, {"v1.13.9", "v1.36.4"},
		{"v1.14.1", "v1.36.4"}, {"v1.13.9", "v1.36.4"}, {"v1.14.1", "v1.36.4"}, {"v1.14.1", "v1.37.1"},
	} {
		one.edit(at(step[0], step[1]))
		s.runsTalos(step[0])
		nodes := s.must("kubectl", "--kubeconfig", one.kubeconfig, "get", "nodes", "-o", "wide")
		assert.Contains(t, nodes.all(), step[1])
	}
	one.isSettled()
}
