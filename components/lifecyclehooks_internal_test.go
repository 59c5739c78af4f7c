// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package components

import (
	"testing"
	"time"

	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"
	"github.com/siderolabs/talos/pkg/machinery/config/generate/secrets"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/talos-proxmox/talos-proxmox/internal/machineconfig"
	"github.com/talos-proxmox/talos-proxmox/internal/pulumitest"
	"github.com/talos-proxmox/talos-proxmox/internal/rollout"
	"github.com/talos-proxmox/talos-proxmox/spec"
)

// runHook runs a hook of a cluster of which nobody answers: its one node is at an address of this machine
// where nothing listens.
func runHook(
	t *testing.T, lifecycle spec.Lifecycle,
	hook func(*TalosCluster, *pulumi.Context) pulumi.ResourceHookFunction,
) error {
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
	client, err := machineconfig.NewClientConfiguration(bundle, time.Now(), time.Hour)
	require.NoError(t, err)
	talosconfig, err := machineconfig.Talosconfig(cfg, client)
	require.NoError(t, err)

	access := newLateAccess(clusterOf(cfg))
	access.set(talosconfig)
	c := &TalosCluster{config: cfg, secrets: &TalosSecrets{name: "test", config: cfg, access: access, gate: rollout.NewGate(1)}}
	var found error
	require.NoError(t, (&pulumitest.Recorder{}).Run(false, func(ctx *pulumi.Context) error {
		found = hook(c, ctx)(&pulumi.ResourceHookArgs{URN: "urn:pulumi:s::p::t::n"})

		return nil
	}))

	return found
}

func TestReadyGateWaitsAsLongAsTheLifecycleSays(t *testing.T) {
	t.Parallel()
	for _, timeout := range []time.Duration{time.Second, 2 * time.Second} {
		err := runHook(t, spec.Lifecycle{ReadyTimeout: spec.Ptr(spec.Duration(timeout))},
			func(c *TalosCluster, ctx *pulumi.Context) pulumi.ResourceHookFunction { return c.waitReady(ctx) })
		assert.ErrorContains(t, err, `cluster "test" is not healthy after `+timeout.String()+
			`: check "the Talos API answers on every node" fails on node ctrl-00 (127.0.0.1): `)
	}
}
