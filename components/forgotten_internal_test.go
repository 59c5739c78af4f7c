// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package components

import (
	"testing"

	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	"github.com/stretchr/testify/assert"

	"github.com/talos-proxmox/talos-proxmox/internal/cluster"
)

func TestOnlyNodesThatNeverRanAreConfiguredAgain(t *testing.T) {
	t.Parallel()

	old, fresh := cluster.Member{Name: "ctrl-00"}, cluster.Member{Name: "ctrl-01"}
	members := []cluster.Member{old, fresh}
	was := resource.NewPropertyMapFromMap(map[string]any{
		"input": map[string]any{"nodes": map[string]any{"ctrl-00": map[string]any{"role": "controlplane"}}},
	})
	assert.Equal(t, []cluster.Member{fresh}, unseen(members, was))
	assert.Equal(t, members, unseen(members, nil), "a first run has seen nobody")
}
