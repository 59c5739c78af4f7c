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
