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

	"github.com/talos-proxmox/talos-proxmox/stack"
)

// shipped are the stack files of the project.
var shipped = map[string]string{
	"dev":           "../Pulumi.dev.yaml",
	"prod":          "../Pulumi.prod.yaml",
	"homelab":       "../examples/homelab/Pulumi.homelab.yaml",
	"cilium-argocd": "../examples/cilium-argocd/Pulumi.cilium-argocd.yaml",
}

// source returns a stack file as Pulumi hands it to a program: JSON by key, secrets in the clear. What
// stands as secure in the text is the secret itself.
func source(t testing.TB, text string) stack.Source {
	t.Helper()
	s, err := stack.SourceOf("test", []byte(text), func(_, secure string) string { return secure })
	require.NoError(t, err)

	return s
}

// load reads a stack file's text as if it stood in the project.
func load(t testing.TB, text string) (*stack.Stack, error) {
	t.Helper()
	s := source(t, text)
	s.Dir = t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(s.Dir, "Pulumi.test.yaml"), []byte(text), 0o600))

	return stack.Load(s)
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

// encoded returns a value as JSON.
func encoded(t testing.TB, v any) string {
	t.Helper()
	text, err := json.Marshal(v)
	require.NoError(t, err)

	return string(text)
}
