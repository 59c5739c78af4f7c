// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package manifests_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/talos-proxmox/talos-proxmox/internal/machineconfig"
	"github.com/talos-proxmox/talos-proxmox/internal/manifests"
)

func TestObjectsAreKnownByWhatTheyAre(t *testing.T) {
	t.Parallel()
	all, err := manifests.Objects([]machineconfig.Manifest{
		{Name: "001-a", Contents: "---\n# nothing\n---\napiVersion: v1\nkind: Namespace\nmetadata: {name: one}\n---\n" +
			"apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web, namespace: one}\nspec: {replicas: 1}\n"},
		{Name: "002-b", Contents: "apiVersion: v1\nkind: List\nitems:\n" +
			"- {apiVersion: apps/v1, kind: Deployment, metadata: {name: web, namespace: one}, spec: {replicas: 2}}\n" +
			"- {apiVersion: v1, kind: Secret, metadata: {name: s, annotations: {helm.sh/resource-policy: keep}}, stringData: {a: b}}\n"},
	})
	require.NoError(t, err)

	var ids []string
	for _, o := range all {
		ids = append(ids, o.ID)
	}
	assert.Equal(t, []string{"v1/Namespace//one", "apps/v1/Deployment/one/web", "v1/Secret//s"}, ids)
	assert.Contains(t, string(all[1].JSON), `"replicas":2`, "the last one counts")
	assert.True(t, all[2].Kept)
	assert.False(t, all[0].Kept)
}

func TestDigestsTellNothingWithoutTheKey(t *testing.T) {
	t.Parallel()
	read := func(value string) manifests.Object {
		all, err := manifests.Objects([]machineconfig.Manifest{{Contents: "apiVersion: v1\nkind: Secret\nmetadata: {name: s}\nstringData: {a: " + value + "}\n"}})
		require.NoError(t, err)

		return all[0]
	}
	one, key := read("one"), []byte("key of the cluster")
	assert.Equal(t, one.Digest(key), read("one").Digest(key))
	assert.NotEqual(t, one.Digest(key), read("two").Digest(key))
	assert.NotEqual(t, one.Digest(key), one.Digest([]byte("another key")))
}

func TestManifestsThatCannotBeRead(t *testing.T) {
	t.Parallel()
	for contents, want := range map[string]string{
		"kind: Secret\nstringData: {a: hunter2}\n": "manifest 001-a: an object has no apiVersion, kind or name",
		"[hunter2]\n":                 "manifest 001-a: it holds something that is no object",
		"{a: \"hunter2\", a: hunter2": "manifest 001-a: it is not YAML: ",
	} {
		_, err := manifests.Objects([]machineconfig.Manifest{{Name: "001-a", Contents: contents}})
		require.ErrorContains(t, err, want)
		assert.NotContains(t, err.Error(), "hunter2")
	}
}
