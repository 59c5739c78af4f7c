// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package talos

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/talos-proxmox/talos-proxmox/internal/cluster"
)

func TestRefuseTalosStep(t *testing.T) {
	t.Parallel()

	refuse := func(from, to string) error {
		return refuseTalosStep("ctrl-00", softwareState{Talos: from}, softwareState{Talos: to})
	}

	assert.NoError(t, refuse("v1.11.5", "v1.12.4"))
	assert.NoError(t, refuse("v1.12.4", "v1.11.5"))
	assert.ErrorContains(t, refuse("v1.9.5", "v1.12.4"),
		"node ctrl-00: talos.version: Talos v1.9.5 cannot be upgraded to v1.12.4 in one step: go to v1.11 first")
}

func TestLeavingMembersAreThoseThatTheClusterHasNoMore(t *testing.T) {
	t.Parallel()

	was := map[string]memberState{
		"ctrl-00": {Address: "10.0.0.1", Hostname: "ctrl-00", Role: "controlplane"},
		"ctrl-01": {Address: "10.0.0.2", Hostname: "one", Role: "controlplane"},
		"work-00": {Address: "10.0.0.3", Hostname: "work-00", Role: "worker"},
	}
	now := cluster.Cluster{Members: []cluster.Member{{Name: "ctrl-00"}, {Name: "ctrl-02"}}}

	assert.Equal(t, []cluster.Member{
		{Name: "ctrl-01", Hostname: "one", Address: "10.0.0.2", ControlPlane: true},
		{Name: "work-00", Hostname: "work-00", Address: "10.0.0.3"},
	}, leavingMembers(was, now))
	assert.Empty(t, leavingMembers(nil, now))
}

func TestUnremembered(t *testing.T) {
	t.Parallel()

	apply := func(address string) stateResource {
		r := stateResource{Type: configurationApplyType}
		r.Outputs.Node = address

		return r
	}
	at := func(name string) string { return "urn:pulumi:s::p::a$" + configurationApplyType + "::" + name }
	state := map[string]stateResource{
		at("small-cp-1"): apply("10.0.0.1"), at("small-cp-2"): apply("10.0.0.2"), at("other-cp-3"): apply("10.0.0.3"),
		"urn:pulumi:s::p::pulumi:index:Stash::small-cp-4": {Type: "pulumi:index:Stash"},
	}
	assert.Equal(t, []cluster.Member{{Name: "cp-2", Hostname: "cp-2", Address: "10.0.0.2", ControlPlane: true}},
		unremembered(state, "small", cluster.Cluster{Members: []cluster.Member{{Name: "cp-1"}}}))
}
