// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package tests_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

// TestTalos114 makes a cluster of one node with Talos 1.14, whose configuration is in documents, and
// takes its Kubernetes to the next minor: each component's image stands in a document of its own.
func TestTalos114(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	at := func(kubernetes string) string {
		return s.small(alone("version: v1.12.4", "version: v1.14.1", "version: v1.35.0", "version: "+kubernetes)...)
	}
	one := s.up("small", at("v1.36.4"))
	s.runsTalos("v1.14.1")
	one.isSettled()

	one.edit(at("v1.37.1"))
	nodes := s.must("kubectl", "--kubeconfig", one.kubeconfig, "get", "nodes", "-o", "wide")
	assert.Contains(t, nodes.all(), "v1.37.1")
	one.isSettled()
}

// TestAClusterGoesToTalos114AndBack rolls three nodes from 1.13 to 1.14 and back; their configuration
// keeps the forms in which it was created.
func TestAClusterGoesToTalos114AndBack(t *testing.T) {
	heavy(t)
	t.Parallel()
	s := newSite(t)
	at := func(version string) string { return s.small("version: v1.12.4", "version: "+version) }
	small := s.up("small", at("v1.13.9"))
	for _, version := range []string{"v1.14.1", "v1.13.9"} {
		started := time.Now()
		small.edit(at(version))
		s.runsTalos(version)
		s.passesTheGate(started, 1)
		s.inOrder(started, "talos.upgrade", "node/10.30.0.1", "node/10.30.0.2", "node/10.30.0.3")
		small.isSettled()
	}
}
