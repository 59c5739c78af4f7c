// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package stack_test

import (
	"reflect"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/talos-proxmox/talos-proxmox/internal/rules"
	"github.com/talos-proxmox/talos-proxmox/spec"
	"github.com/talos-proxmox/talos-proxmox/stack"
)

func TestKeysAreAllSettings(t *testing.T) {
	t.Parallel()
	found := map[string]spec.Key{}
	for _, k := range stack.Keys() {
		require.NotContains(t, found, k.Path)
		found[k.Path] = k
		if k.Type.Kind() == reflect.Int && k.Enum == nil {
			assert.NotEmpty(t, k.Min, "%s has no least value", k.Path)
		}
		assert.Equal(t, strings.ToLower(k.Path[strings.LastIndex(k.Path, ".")+1:][:1]), k.Path[strings.LastIndex(k.Path, ".")+1:][:1], k.Path)
	}
	for _, path := range []string{
		"nodes.*.disks.*.size", "pools.*.members[].networks.*.routes[].gateway", "talos.registries.*.password",
		"sizes.*.gpu.identities.*.id", "gitops.git.auth.githubApp.privateKey", "defaults.worker.osDisk.speed.iopsRead",
	} {
		assert.Contains(t, found, path)
	}
	assert.Equal(t, []string{"q35", "i440fx"}, found["nodes.*.machine"].Enum)
	assert.Equal(t, "q35", found["nodes.*.machine"].Default)
	assert.True(t, found["nodes.*.machine"].Leaf())
	assert.False(t, found["nodes.*.disks"].Leaf())
	assert.True(t, found["proxmox.ssh.username"].Required)
	assert.Greater(t, len(found), 900)
}

// TestEveryDefaultIsRead makes sure that each default tag is a value of its field.
func TestEveryDefaultIsRead(t *testing.T) {
	t.Parallel()
	for _, k := range stack.Keys() {
		if k.Default == "" {
			continue
		}
		block := reflect.New(k.Owner)
		spec.FillDefaults(block.Interface())
		field := reflect.Indirect(block.Elem().FieldByName(k.Field))
		require.True(t, field.IsValid(), k.Path)
		if k.Default != "0" && k.Default != "false" {
			assert.False(t, field.IsZero(), "%s: default %q is not read", k.Path, k.Default)
		}
		for _, f := range spec.Fields(k.Owner) {
			if f.Struct.Name == k.Field {
				assert.Empty(t, rules.CheckValue(f, field), k.Path)
			}
		}
	}
}
