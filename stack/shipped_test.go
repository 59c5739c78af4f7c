// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package stack_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"gopkg.in/yaml.v3"

	"github.com/talos-proxmox/talos-proxmox/stack"
)

// shipped are the stack files of the project.
var shipped = map[string]string{
	"dev":           "../Pulumi.dev.yaml",
	"prod":          "../Pulumi.prod.yaml",
	"homelab":       "../examples/homelab/Pulumi.homelab.yaml",
	"cilium-argocd": "../examples/cilium-argocd/Pulumi.cilium-argocd.yaml",
}

// values turns a stack file into what Pulumi hands to a program: JSON by key.
func values(t testing.TB, text []byte) map[string]string {
	t.Helper()
	var file struct {
		Config map[string]any `yaml:"config"`
	}
	require.NoError(t, yaml.Unmarshal(text, &file))
	out := map[string]string{}
	for key, value := range file.Config {
		if s, ok := value.(string); ok {
			out[key] = s

			continue
		}
		encoded, err := json.Marshal(value)
		require.NoError(t, err)
		out[key] = string(encoded)
	}

	return out
}

// load reads a stack file's text as if it stood in the project.
func load(t testing.TB, text string) (*stack.Stack, error) {
	t.Helper()
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "Pulumi.test.yaml"), []byte(text), 0o600))

	return stack.Load(stack.Source{Stack: "test", Dir: dir, Values: values(t, []byte(text))})
}

func read(t testing.TB, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	require.NoError(t, err)

	return string(text)
}

func TestShippedStacksLoad(t *testing.T) {
	t.Parallel()
	for name, path := range shipped {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, err := load(t, read(t, path))
			require.NoError(t, err)
			require.NotEmpty(t, s.Nodes)
			var lines []string
			for _, n := range s.Nodes {
				require.True(t, n.Address().IsValid())
				lines = append(lines, strings.Join([]string{n.Name, *n.Host, n.Address().String()}, " "))
			}
			t.Log(lines)
		})
	}
}
