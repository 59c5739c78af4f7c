// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package standin_test

import (
	"context"
	"testing"
	"time"

	pulumirpc "github.com/pulumi/pulumi/sdk/v3/proto/go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/talos-proxmox/talos-proxmox/lab/standin/bridge"
)

// On one real API server: what Flux's objects do to a program that treats them as any others.
func TestPitfallsOfCustomObjects(t *testing.T) {
	t.Parallel()

	kubeconfig, _ := realCluster(t)
	e := kubernetes(t, kubeconfig)
	const kind = "kubernetes:demo.example.com/v1:Sync"
	object := bridge.Tree{
		"apiVersion": "demo.example.com/v1", "kind": "Sync",
		"metadata": bridge.Tree{"name": "flux-system", "namespace": "default", "finalizers": []string{"finalizers.fluxcd.io"}},
		"spec":     bridge.Tree{"url": "https://git.example.com/a.git"},
	}
	in, problems := e.check(urn(kind, "sync"), object.Properties(), nil)
	require.Empty(t, problems)

	// Before its definition the object is refused; the provider tries five times and no more.
	_, _, err := e.create(urn(kind, "sync"), in, false)
	require.ErrorContains(t, err, "Verify that any required CRDs have been created")

	crd := urn("kubernetes:apiextensions.k8s.io/v1:CustomResourceDefinition", "syncs")
	crdIn, problems := e.check(crd, bridge.Tree{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
		"metadata": bridge.Tree{"name": "syncs.demo.example.com"},
		"spec": bridge.Tree{
			"group": "demo.example.com", "scope": "Namespaced",
			"names": bridge.Tree{"kind": "Sync", "plural": "syncs", "singular": "sync", "listKind": "SyncList"},
			"versions": []bridge.Tree{{
				"name": "v1", "served": true, "storage": true,
				"schema": bridge.Tree{"openAPIV3Schema": bridge.Tree{"type": "object", "x-kubernetes-preserve-unknown-fields": true}},
			}},
		},
	}.Properties(), nil)
	require.Empty(t, problems)
	_, _, err = e.create(crd, crdIn, false)
	require.NoError(t, err)
	id, out, err := e.create(urn(kind, "sync"), in, false)
	require.NoError(t, err, "after its definition")

	// Without the controller that owns its finalizer the object never goes.
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	_, err = e.rpc.Delete(ctx, &pulumirpc.DeleteRequest{
		Urn: string(urn(kind, "sync")), Id: id, OldInputs: e.marshal(in), Properties: e.marshal(out), Timeout: 2,
	})
	require.ErrorContains(t, err, "timed out waiting for the condition")
	assert.NotEmpty(t, e.read(urn(kind, "sync"), id, in, out).GetId(), "ten minutes later, unless set, it is still there")
}
