// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package components

import (
	"testing"

	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"
	"github.com/stretchr/testify/assert"

	"github.com/talos-proxmox/talos-proxmox/internal/cluster"
)

func TestRefuseTalosStep(t *testing.T) {
	t.Parallel()

	step := func(from, to string) *pulumi.ResourceHookArgs {
		input := func(version string) resource.PropertyMap {
			return resource.NewPropertyMapFromMap(map[string]any{"input": map[string]any{"talos": version}})
		}

		return &pulumi.ResourceHookArgs{OldInputs: input(from), NewInputs: input(to)}
	}
	refuse := refuseTalosStep("ctrl-00")

	assert.NoError(t, refuse(step("v1.11.5", "v1.12.4")))
	assert.NoError(t, refuse(step("v1.12.4", "v1.11.5")))
	assert.ErrorContains(t, refuse(step("v1.9.5", "v1.12.4")),
		"node ctrl-00: talos.version: Talos v1.9.5 cannot be upgraded to v1.12.4 in one step: go to v1.11 first")
}

func TestLeavingMembersAreThoseThatTheClusterHasNoMore(t *testing.T) {
	t.Parallel()

	was := resource.NewPropertyMapFromMap(map[string]any{"input": map[string]any{
		"ctrl-00": map[string]any{"address": "10.0.0.1", "hostname": "ctrl-00", "role": "controlplane"},
		"ctrl-01": map[string]any{"address": "10.0.0.2", "hostname": "one", "role": "controlplane"},
		"work-00": map[string]any{"address": "10.0.0.3", "hostname": "work-00", "role": "worker"},
	}})
	now := cluster.Cluster{Members: []cluster.Member{{Name: "ctrl-00"}, {Name: "ctrl-02"}}}

	assert.Equal(t, []cluster.Member{
		{Name: "ctrl-01", Hostname: "one", Address: "10.0.0.2", ControlPlane: true},
		{Name: "work-00", Hostname: "work-00", Address: "10.0.0.3"},
	}, leavingMembers(was, now))
	assert.Empty(t, leavingMembers(resource.PropertyMap{}, now))
}
