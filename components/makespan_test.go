// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package components_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/talos-proxmox/talos-proxmox/internal/pulumitest"
	"github.com/talos-proxmox/talos-proxmox/tests/makespan"
)

// order returns what was registered as makespan reads it from a state.
func order(r *pulumitest.Recorder) []makespan.Resource {
	var resources []makespan.Resource
	for _, args := range r.All() {
		kind := args.TypeToken
		resources = append(resources, makespan.Resource{
			URN: urnEnd(kind, args.Name), Type: kind, Dependencies: ends(args.RegisterRPC.GetDependencies()),
		})
	}

	return resources
}

// urnEnd returns what of a URN tells resources of a stack apart: the type, without those of its parents, and the name.
func urnEnd(kind, name string) string { return kind[strings.LastIndex(kind, "$")+1:] + "::" + name }

func ends(urns []string) []string {
	var short []string
	for _, urn := range urns {
		parts := strings.Split(urn, "::")
		short = append(short, urnEnd(parts[2], strings.Join(parts[3:], "::")))
	}

	return short
}

// TestACreationOfManyNodesTakesLittleMoreThanTheEngineAllows works out how long the creation of 303 nodes takes on real
// machines with as many steps at a time as the engine takes on two cores, from the order in which they are registered.
func TestACreationOfManyNodesTakesLittleMoreThanTheEngineAllows(t *testing.T) {
	t.Parallel()
	const nodes, most = 303, 1.10
	times := makespan.Lifelike()
	times.Parallel = 8

	plan := makespan.Of(order(registerLarge(t, nodes)), "test", "n-0000", times)
	t.Log(plan)
	assert.Greater(t, plan.Allowed, plan.Chain, "one machine after the other")
	assert.LessOrEqual(t, plan.RatioAllowed(), most)
}
