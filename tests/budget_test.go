// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package tests_test

import (
	"encoding/json"
	"fmt"
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
