// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package talos

import (
	"testing"
	"time"

	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"
	"github.com/siderolabs/talos/pkg/machinery/config/generate/secrets"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/talos-proxmox/talos-proxmox/components/internal/hook"
	"github.com/talos-proxmox/talos-proxmox/internal/pulumitest"
	"github.com/talos-proxmox/talos-proxmox/internal/talossecrets"
	"github.com/talos-proxmox/talos-proxmox/spec"
)

// runHook runs a hook of a cluster of which nobody answers: its one node is at an address of this machine
// where nothing listens.
// sessionOf returns the session of a cluster of which nobody answers.
func sessionOf(t *testing.T, ctx *pulumi.Context, lifecycle spec.Lifecycle) *Session {
	t.Helper()
	role := spec.ControlPlane
	cfg := spec.Config{
		Cluster: spec.Cluster{Name: spec.Ptr("test")}, Lifecycle: lifecycle,
		Nodes: []spec.NamedNode{{Name: "ctrl-00", Node: spec.Node{
			Role: &role, Networks: map[string]spec.Network{"lan": {Address: spec.Ptr("127.0.0.1/8")}},
		}}},
	}.WithDefaults()
	bundle, err := secrets.NewBundle(secrets.NewClock(), nil)
	require.NoError(t, err)
	client, err := talossecrets.NewClientConfiguration(bundle, time.Now(), time.Hour)
	require.NoError(t, err)
	talosconfig, err := talossecrets.Talosconfig(cfg, client)
	require.NoError(t, err)
	s := NewSession(ctx, "test", cfg)
	s.APIs.talosconfig.Set(talosconfig)

	return s
}

func TestReadyGateWaitsAsLongAsTheLifecycleSays(t *testing.T) {
	t.Parallel()
	for _, timeout := range []time.Duration{time.Second, 2 * time.Second} {
		var found error
		require.NoError(t, (&pulumitest.Recorder{}).Run(false, func(ctx *pulumi.Context) error {
			s := sessionOf(t, ctx, spec.Lifecycle{ReadyTimeout: spec.Ptr(spec.Duration(timeout))})
			found = waitReady(s, hook.Step{Ctx: ctx, URN: "urn:pulumi:s::p::t::n"}, readyState{})

			return nil
		}))
		assert.ErrorContains(t, found, `cluster "test" is not healthy after `+timeout.String()+
			`: check "the Talos API answers on every node" fails on node ctrl-00 (127.0.0.1): `)
	}
}

func TestSummary(t *testing.T) {
	t.Parallel()

	node := func(name string, role spec.Role, address string) spec.NamedNode {
		return spec.NamedNode{Name: name, Node: spec.Node{Role: &role, Networks: map[string]spec.Network{
			"lan": {Address: spec.Ptr(address)},
		}}}
	}
	cfg := spec.Config{
		Cluster: spec.Cluster{Name: spec.Ptr("small")},
		Nodes:   []spec.NamedNode{node("cp-1", spec.ControlPlane, "10.0.0.1/24"), node("w-1", spec.Worker, "10.0.0.2/24"), node("w-2", spec.Worker, "10.0.0.3/24")},
	}.WithDefaults()
	assert.Equal(t, `cluster "small" is ready: 1 control plane and 2 workers at https://10.0.0.1:6443; credentials: `+
		"`pulumi stack output kubeconfig --show-secrets`, `pulumi stack output talosconfig --show-secrets`", summary(cfg))
}
