// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package docgen_test

import (
	"bytes"
	"os"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"

	"github.com/talos-proxmox/talos-proxmox/stack/docgen"
)

// compiled returns the schema as it is committed.
func compiled(t *testing.T) *jsonschema.Schema {
	t.Helper()
	text, err := os.ReadFile("../../" + docgen.SchemaPath)
	require.NoError(t, err)
	document, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	require.NoError(t, err)
	c := jsonschema.NewCompiler()
	require.NoError(t, c.AddResource("stack.json", document))
	s, err := c.Compile("stack.json")
	require.NoError(t, err)

	return s
}

func validate(t *testing.T, s *jsonschema.Schema, text string) error {
	t.Helper()
	asJSON, err := yaml.YAMLToJSON([]byte(text))
	require.NoError(t, err)
	document, err := jsonschema.UnmarshalJSON(bytes.NewReader(asJSON))
	require.NoError(t, err)

	return s.Validate(document)
}

func TestSchemaAcceptsShippedStacks(t *testing.T) {
	t.Parallel()
	s := compiled(t)
	for _, path := range []string{
		"Pulumi.dev.yaml", "Pulumi.prod.yaml", "examples/homelab/Pulumi.homelab.yaml", "examples/cilium-argocd/Pulumi.cilium-argocd.yaml",
	} {
		text, err := os.ReadFile("../../" + path)
		require.NoError(t, err)
		require.NoError(t, validate(t, s, string(text)), path)
	}
}

func TestSchemaRefuses(t *testing.T) {
	t.Parallel()
	s := compiled(t)
	for name, c := range map[string]struct{ text, where string }{
		"unknown key":       {"config: {talos-proxmox:cluster: {nmae: a}}", "/config/talos-proxmox:cluster"},
		"unknown block":     {"config: {talos-proxmox:clusters: {}}", "talos-proxmox:clusters"},
		"plain secret":      {"config: {talos-proxmox:gitops: {sops: {ageKey: x}}}", "/config/talos-proxmox:gitops/sops/ageKey"},
		"not among choices": {"config: {talos-proxmox:defaults: {all: {bios: uefi}}}", "/config/talos-proxmox:defaults/all/bios"},
		"two of one":        {"config: {talos-proxmox:talos: {patches: {all: [{inline: a, file: b}]}}}", "/config/talos-proxmox:talos/patches/all/0"},
		"none of two":       {"config: {talos-proxmox:manifests: {inline: {a: {order: 1}}}}", "/config/talos-proxmox:manifests/inline/a"},
		"half a pool":       {"config: {talos-proxmox:cni: {name: cilium, cilium: {pools: {a: {start: 10.0.0.1}}}}}", "/config/talos-proxmox:cni/cilium/pools/a"},
		"cilium unnamed":    {"config: {talos-proxmox:cni: {cilium: {}}}", "/config/talos-proxmox:cni"},
		"flannel's cilium":  {"config: {talos-proxmox:cni: {name: flannel, cilium: {}}}", "/config/talos-proxmox:cni/name"},
		"key without place": {"config: {talos-proxmox:talos: {diskEncryption: {state: {key: kms}}}}", "/config/talos-proxmox:talos/diskEncryption/state"},
		"ssh without hosts": {"config: {talos-proxmox:gitops: {git: {auth: {type: ssh}}}}", "/config/talos-proxmox:gitops/git/auth"},
		"flux without git":  {"config: {talos-proxmox:gitops: {provider: flux}}", "/config/talos-proxmox:gitops"},
		"adopted, no keys":  {"config: {talos-proxmox:cluster: {adopted: true}}", "/config/talos-proxmox:cluster"},
		"user, no password": {"config: {talos-proxmox:gitops: {chart: {username: a}}}", "/config/talos-proxmox:gitops/chart"},
		"out of range":      {"config: {talos-proxmox:nodes: {a: {vmId: 12}}}", "/config/talos-proxmox:nodes/a/vmId"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := validate(t, s, c.text)
			require.Error(t, err)
			require.True(t, strings.Contains(err.Error(), "'"+c.where+"'"), "%v", err)
		})
	}
	require.NoError(t, validate(t, s, "config: {talos-proxmox:gitops: {sops: {ageKey: {secure: v1:abc}}}, aws:region: x}"))
}
