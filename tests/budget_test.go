// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package tests_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestAWorkersCost holds what each further worker costs: resources in a plan, and bytes of state. Both are counted, so
// that they are the same on every machine.
func TestAWorkersCost(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	const resourcesPerWorker, bytesPerWorker = 4, 60_000

	few, many := []string{"cp-1", "worker-2"}, []string{"cp-1", "worker-2"}
	for i := 3; i <= 5; i++ {
		many = append(many, fmt.Sprintf("worker-%d", i))
	}
	further := len(many) - len(few)
	small := s.up("small", s.of(few))
	before := len(s.must("pulumi", "stack", "export", "--stack", "small").stdout)

	plan := s.must("pulumi", "preview", "--json", "--stack", "small", "--config-file", s.of(many), "--non-interactive")
	var steps struct {
		ChangeSummary map[string]int `json:"changeSummary"`
	}
	require.NoError(t, json.Unmarshal([]byte(plan.stdout), &steps))
	assert.LessOrEqual(t, steps.ChangeSummary["create"], further*resourcesPerWorker)

	small.edit(s.of(many))
	after := len(s.must("pulumi", "stack", "export", "--stack", "small").stdout)
	assert.LessOrEqual(t, (after-before)/further, bytesPerWorker)
}

// TestAPlanOfManyNodes plans a cluster of 303 nodes with the real engine and counts its resources.
func TestAPlanOfManyNodes(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	const nodes, resourcesPerNode, ofTheCluster = 303, 4, 40

	var hosts, lines strings.Builder
	for i := range nodes {
		role := "worker"
		if i < 3 {
			role = "controlplane"
		}
		fmt.Fprintf(&lines, "    n-%03d: {role: %s, host: pve%d, vmId: %d, networks: {lan: {address: 10.30.%d.%d}}}\n",
			i, role, i%10+1, 1001+i, i/200+1, i%200+1)
	}
	for i := range 10 {
		fmt.Fprintf(&hosts, "      pve%d: {datastore: local-lvm}\n", i+1)
	}
	file := s.small(
		"      pve1: {datastore: local-lvm}\n", hosts.String(), "      host: pve1\n", "", "10.30.0.0/24", "10.30.0.0/16",
		"allowSchedulingOnControlPlanes: true", "allowSchedulingOnControlPlanes: true\n    podSubnets: [10.128.0.0/12]",
		nodeLine("cp-1"), "", nodeLine("cp-2"), "", nodeLine("cp-3"), lines.String(),
	)
	s.create("small")
	plan := s.must("pulumi", "preview", "--json", "--stack", "small", "--config-file", file, "--non-interactive")
	var steps struct {
		ChangeSummary map[string]int `json:"changeSummary"`
	}
	require.NoError(t, json.Unmarshal([]byte(plan.stdout), &steps))
	t.Logf("%d resources", steps.ChangeSummary["create"])
	assert.LessOrEqual(t, steps.ChangeSummary["create"], ofTheCluster+nodes*resourcesPerNode)
	assert.GreaterOrEqual(t, steps.ChangeSummary["create"], 3*nodes, "all of it is planned")
}
