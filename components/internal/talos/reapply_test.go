// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package talos

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/talos-proxmox/talos-proxmox/internal/cluster"
)

func TestOnlyNodesThatNeverRanAreConfiguredAgain(t *testing.T) {
	t.Parallel()

	old, fresh := cluster.Member{Name: "ctrl-00"}, cluster.Member{Name: "ctrl-01"}
	members := []cluster.Member{old, fresh}
	was := readyState{Nodes: map[string]struct{}{"ctrl-00": {}}}
	assert.Equal(t, []cluster.Member{fresh}, unseen(members, was))
	assert.Equal(t, members, unseen(members, readyState{}), "a first run has seen nobody")
}
