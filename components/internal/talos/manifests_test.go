// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package talos

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/talos-proxmox/talos-proxmox/internal/kubeapply"
	"github.com/talos-proxmox/talos-proxmox/internal/machineconfig"
)

func TestEditOfManifestsSaysWhatBecomesOfObjects(t *testing.T) {
	t.Parallel()
	edit := manifestEditOf(map[string]string{
		"apps/v1/Deployment/one/same": "1", "apps/v1/Deployment/one/edited": "2", "v1/ConfigMap/one/gone": "3",
		"https://example.com/same.yaml": "fetched", "https://example.com/gone.yaml": "fetched",
		"v1/Namespace//one": "4", "v1/Secret/one/kept": "5 kept", "apiextensions.k8s.io/v1/CustomResourceDefinition//a.example.com": "6",
	}, map[string]string{
		"apps/v1/Deployment/one/same": "1", "apps/v1/Deployment/one/edited": "7", "v1/Service/one/new": "8",
		"https://example.com/same.yaml": "fetched", "https://example.com/new.yaml": "fetched",
	})

	assert.Equal(t, []string{
		"Deployment one/edited will be applied",
		"Service one/new will be applied",
		"https://example.com/new.yaml will be fetched, and what it holds applied",
		"what https://example.com/gone.yaml held will be deleted where no other manifest has it, but for kinds, namespaces and volumes",
		"ConfigMap one/gone will be deleted, since its manifest is gone",
		"CustomResourceDefinition a.example.com stays, since what is in it would go too: delete it yourself when it is no longer needed",
		"Namespace one stays, since what is in it would go too: delete it yourself when it is no longer needed",
		"Secret one/kept stays, since its chart says so: delete it yourself when it is no longer needed",
	}, edit.lines())
	assert.Empty(t, manifestEditOf(nil, nil).lines())
}

func TestObjectsAreAppliedInTheOrderOfTheirManifests(t *testing.T) {
	t.Parallel()
	objects := &dayZeroObjects{}
	digests, err := objects.set([]machineconfig.Manifest{
		{Name: "001-b", Contents: "{apiVersion: v1, kind: ConfigMap, metadata: {name: b}}"},
		{Name: "002-a", Contents: "{apiVersion: v1, kind: Secret, metadata: {name: a, annotations: {helm.sh/resource-policy: keep}}, stringData: {x: hunter2}}"},
	}, []string{"https://example.com/a.yaml"}, []byte("key"))
	require.NoError(t, err)
	require.Len(t, digests, 3)
	assert.Equal(t, "fetched", digests["https://example.com/a.yaml"])
	assert.Regexp(t, `^[0-9a-f]{16} kept$`, digests["v1/Secret//a"])

	found := objects.of([]kubeapply.ObjectID{"v1/Secret//a", "v1/ConfigMap//b"})
	require.Len(t, found, 2)
	assert.Equal(t, kubeapply.ObjectID("v1/ConfigMap//b"), found[0].ID)
}
