// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package makespan_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/talos-proxmox/talos-proxmox/tests/makespan"
)

const urn = "urn:pulumi:s::p::t::"

// resource returns a resource that comes after others.
func resource(kind, name string, after ...string) makespan.Resource {
	r := makespan.Resource{URN: urn + name, Type: kind}
	for _, other := range after {
		r.Dependencies = append(r.Dependencies, urn+other)
	}

	return r
}

// twoNodes returns a control plane and a worker, whose configuration comes after others.
func twoNodes(worker ...string) []makespan.Resource {
	return []makespan.Resource{
		resource("proxmoxve:Download/file:File", "image"),
		resource("proxmoxve:VM/virtualMachine:VirtualMachine", "c-cp-vm", "image"),
		resource("proxmoxve:VM/virtualMachine:VirtualMachine", "c-w-vm", "image"),
		resource("talos:machine/configurationApply:ConfigurationApply", "c-cp", "c-cp-vm"),
		resource("talos:machine/configurationApply:ConfigurationApply", "c-w", append(worker, "c-w-vm")...),
		resource("pulumi:index:Stash", "c-bootstrap", "c-cp"),
		resource("pulumi:index:Stash", "c-ready", "c-bootstrap", "c-w"),
	}
}

func TestACreationWithoutNeedlessWaits(t *testing.T) {
	t.Parallel()
	times := makespan.Times{
		Download: time.Minute, CreateVM: 20 * time.Second, Boot: 30 * time.Second, Install: time.Minute, Join: 30 * time.Second,
	}

	plan := makespan.Of(twoNodes(), "c", "cp", times)
	assert.Equal(t, 230*time.Second, plan.Chain.Round(time.Second), "download, VM, boot, installation, bootstrap, join")
	assert.InDelta(t, 1, plan.Ratio(), 0.01)
	require.NotEmpty(t, plan.Steps)
	assert.Equal(t, "c-ready", plan.Steps[len(plan.Steps)-1].Name)

	late := makespan.Of(twoNodes("c-bootstrap"), "c", "cp", times)
	assert.Equal(t, 260*time.Second, late.Took.Round(time.Second), "the worker installs when the control plane has")

	times.CreateVM = 90 * time.Second
	together := makespan.Of(twoNodes(), "c", "cp", times)
	times.Parallel = 1
	alone := makespan.Of(twoNodes(), "c", "cp", times)
	assert.Greater(t, alone.Took, together.Took, "the engine makes one machine after the other")
	assert.Equal(t, together.Chain, alone.Chain)
}
