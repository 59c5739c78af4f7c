// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package stack_test

import (
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"github.com/talos-proxmox/talos-proxmox/spec"
	"github.com/talos-proxmox/talos-proxmox/stack"
)

// withKeys are keys of right stacks that hold a certificate or a private key, which tests of what a key does have.
var withKeys = []string{
	"SSH.PrivateKey", "Registry.CA", "Talos.TrustedRoots", "GitAuth.CA", "GitHubApp.BaseURL", "Cluster.SecretsBundle", "Cluster.Adopted",
	"Cluster.AcceptedCAs", "AcceptedCAs.Talos", "AcceptedCAs.Kubernetes",
}

// TestEveryKeyIsInARightStack holds that the right stacks, generated and written, have every key that a stack file can have.
func TestEveryKeyIsInARightStack(t *testing.T) {
	t.Parallel()
	used := map[string]bool{}
	for _, m := range mistakes(t) {
		if m.at == "ok" {
			keysUsed(m.file(t, t.TempDir()), used)
		}
	}
	for seed := range uint64(80) {
		g := &generator{Rand: rand.New(rand.NewPCG(seed, 16)), chosen: map[string]int{}} //nolint:gosec // the same stacks each time
		var file map[string]any
		require.NoError(t, yaml.Unmarshal([]byte(g.stack(t)), &file))
		keysUsed(file, used)
	}
	keys := spec.KeysOf(reflect.TypeFor[stack.File](), "")
	for _, k := range keys {
		if !slices.Contains(withKeys, nameOf(k)) {
			assert.True(t, used[nameOf(k)], "no right stack has %s (%s)", k.Path, nameOf(k))
		}
	}
	t.Logf("%d keys", len(keys))
}

// nameOf returns the owner and the field of a key: the same wherever a block of settings stands.
func nameOf(k spec.Key) string { return k.Owner.Name() + "." + k.Field }

// keysUsed notes the keys that a stack file has.
func keysUsed(file map[string]any, used map[string]bool) {
	config, _ := file["config"].(map[string]any)
	for _, f := range spec.Fields(reflect.TypeFor[stack.File]()) {
		if value, ok := config[stack.Project+":"+f.Name]; ok {
			used["File."+f.Struct.Name] = true
			usedBelow(value, f.Type, used)
		}
	}
}

// usedBelow notes the keys below a value of a type.
func usedBelow(value any, t reflect.Type, used map[string]bool) {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch value := value.(type) {
	case map[string]any:
		switch t.Kind() {
		case reflect.Map:
			for _, v := range value {
				usedBelow(v, t.Elem(), used)
			}
		case reflect.Struct:
			for _, f := range spec.Fields(t) {
				if v, ok := value[f.Name]; ok {
					used[owner(t, f)+"."+f.Struct.Name] = true
					usedBelow(v, f.Type, used)
				}
			}
		}
	case []any:
		if t.Kind() == reflect.Slice {
			for _, v := range value {
				usedBelow(v, t.Elem(), used)
			}
		}
	}
}

// owner returns the name of the type that has a field, which may be embedded.
func owner(t reflect.Type, f spec.Field) string {
	for _, i := range f.Index[:len(f.Index)-1] {
		t = t.Field(i).Type
	}

	return t.Name()
}
