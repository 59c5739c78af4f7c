// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package talos

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/talos-proxmox/talos-proxmox/spec"
)

func TestConfigurationsGoToOneNodeFirst(t *testing.T) {
	t.Parallel()

	node := func(name string, role spec.Role) spec.NamedNode {
		return spec.NamedNode{Name: name, Node: spec.Node{Role: spec.Ptr(role)}}
	}
	cfg := spec.Config{Nodes: []spec.NamedNode{
		node("work-1", spec.Worker), node("cp-1", spec.ControlPlane), node("work-2", spec.Worker),
		node("cp-2", spec.ControlPlane), node("work-3", spec.Worker), node("cp-3", spec.ControlPlane),
	}}

	assert.Equal(t, map[string]string{
		"cp-1": "", "cp-2": "cp-1", "cp-3": "cp-2", "work-1": "cp-3", "work-2": "work-1", "work-3": "work-1",
	}, predecessors(cfg))
}
