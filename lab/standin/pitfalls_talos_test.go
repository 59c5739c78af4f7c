// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package standin_test

import (
	"testing"
	"time"

	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	pulumirpc "github.com/pulumi/pulumi/sdk/v3/proto/go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/talos-proxmox/talos-proxmox/lab/standin/bridge"
)

const (
	applyToken      = "talos:machine/configurationApply:ConfigurationApply"
	bootstrapToken  = "talos:machine/bootstrap:Bootstrap"
	kubeconfigToken = "talos:cluster/kubeconfig:Kubeconfig"
)

// A mistake in a configuration that Talos cannot read is not "invalid" to the provider: it tries again until the end.
func TestPitfallMistakesShowAfterTheWholeTimeout(t *testing.T) {
	t.Parallel()

	e := talosEngine(t)
	secrets := e.secrets()
	n := &fakeNode{refuse: status.Error(codes.Unknown, "failed to parse config: unknown keys found")}
	in, problems := e.check(urn(applyToken, "cp1"), resource.PropertyMap{
		"clientConfiguration": secrets["clientConfiguration"], "node": resource.NewProperty("127.0.0.1"),
		"endpoint": resource.NewProperty(n.start(t, nil)), "machineConfigurationInput": resource.NewProperty("nonsense: true"),
		"timeouts": resource.NewProperty(resource.PropertyMap{"create": resource.NewProperty("2s")}),
	}, nil)
	require.Empty(t, problems)

	started := time.Now()
	_, _, err := e.create(urn(applyToken, "cp1"), in, false)
	require.ErrorContains(t, err, "unknown keys found")
	assert.Greater(t, time.Since(started), 1500*time.Millisecond, "10 minutes unless set")
}

// What the provider keeps of an apply is what it was asked for, not what the node has: a new machine under the same
// address is none of its business.
func TestPitfallNewMachineIsNoReasonToApply(t *testing.T) {
	t.Parallel()

	e := talosEngine(t)
	secrets := e.secrets()
	n := &fakeNode{}
	u := urn(applyToken, "cp1")
	in, problems := e.check(u, resource.PropertyMap{
		"clientConfiguration": secrets["clientConfiguration"], "node": resource.NewProperty("127.0.0.1"),
		"endpoint":                  resource.NewProperty(n.start(t, nil)),
		"machineConfigurationInput": resource.NewProperty(e.machineConfig(secrets)),
	}, nil)
	require.Empty(t, problems)
	id, out, err := e.create(u, in, false)
	require.NoError(t, err)

	n.mu.Lock()
	n.applied = nil // as a blank disk
	n.mu.Unlock()
	r := e.read(u, id, in, out)
	d := e.diff(u, id, e.unmarshal(r.GetInputs()), e.unmarshal(r.GetProperties()), in)
	assert.Equal(t, pulumirpc.DiffResponse_DIFF_NONE, d.GetChanges(), "not even a refresh sees it")
}

func TestPitfallKubeconfigOfAnotherClusterIsKept(t *testing.T) {
	t.Parallel()

	e := talosEngine(t)
	before, after := e.secrets(), e.secrets()
	u := urn(kubeconfigToken, "kubeconfig")
	input := func(secrets resource.PropertyMap) resource.PropertyMap {
		in, problems := e.check(u, resource.PropertyMap{
			"clientConfiguration": secrets["clientConfiguration"], "node": resource.NewProperty("127.0.0.1"),
		}, nil)
		require.Empty(t, problems)

		return in
	}
	state := input(before).Copy()
	state["endpoint"] = resource.NewProperty("127.0.0.1")
	state["kubeconfigRaw"] = resource.MakeSecret(resource.NewProperty("of the cluster that is gone"))

	d := e.diff(u, "dev", input(before), state, input(after))
	assert.Equal(t, pulumirpc.DiffResponse_DIFF_SOME, d.GetChanges())
	assert.Empty(t, d.GetReplaces())
	out, err := e.update(u, "dev", input(before), state, input(after))
	require.NoError(t, err, "nobody was asked")
	assert.Equal(t, "of the cluster that is gone", out["kubeconfigRaw"].SecretValue().Element.StringValue())
}

// A health check is a function: it runs at every preview too, as long as its cluster is down.
func TestPitfallHealthCheckBlocksAPreview(t *testing.T) {
	t.Parallel()

	e := talosEngine(t)
	started := time.Now()
	_, err := e.invoke("talos:cluster/getHealth:getHealth", bridge.Tree{
		"clientConfiguration": bridge.TreeOf(e.secrets()).At("clientConfiguration"),
		"controlPlaneNodes":   []string{"127.0.0.1"}, "endpoints": []string{"127.0.0.1:1"},
		"timeouts": bridge.Tree{"read": "2s"},
	})
	require.Error(t, err)
	assert.Greater(t, time.Since(started), 1500*time.Millisecond, "10 minutes unless set")
}

// Bootstrapping what is bootstrapped is tried again and again: a lost state entry costs ten minutes and an error.
func TestPitfallSecondBootstrapIsTriedUntilTheEnd(t *testing.T) {
	t.Parallel()

	e := talosEngine(t)
	secrets := e.secrets()
	n := &fakeNode{failures: 1 << 20}
	started := time.Now()
	_, _, err := e.create(urn(bootstrapToken, "bootstrap"), resource.PropertyMap{
		"clientConfiguration": secrets["clientConfiguration"], "node": resource.NewProperty("127.0.0.1"),
		"endpoint": resource.NewProperty(n.start(t, nil)),
		"timeouts": resource.NewProperty(resource.PropertyMap{"create": resource.NewProperty("2s")}),
	}, false)
	require.ErrorContains(t, err, "bootstrap is not available yet")
	assert.Greater(t, time.Since(started), 1500*time.Millisecond)
}
