// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package kubernetes_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/talos-proxmox/talos-proxmox/lab/standin/kubernetes"
)

// The inputs of a Release are those of the SDK. They are read from its source: importing the package
// would compile every kind of Kubernetes.
func TestReleaseInputsAreTheSDKs(t *testing.T) {
	t.Parallel()

	out, err := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Dir}}",
		"github.com/pulumi/pulumi-kubernetes/sdk/v4").Output()
	require.NoError(t, err)

	file := filepath.Join(strings.TrimSpace(string(out)), "go", "kubernetes", "helm", "v3", "release.go")
	parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
	require.NoError(t, err)

	var want []string
	ast.Inspect(parsed, func(n ast.Node) bool {
		spec, ok := n.(*ast.TypeSpec)
		if !ok || spec.Name.Name != "releaseArgs" {
			return true
		}
		for _, f := range spec.Type.(*ast.StructType).Fields.List { // it is one
			want = append(want, reflect.StructTag(strings.Trim(f.Tag.Value, "`")).Get("pulumi"))
		}
		return false
	})
	require.NotEmpty(t, want)
	slices.Sort(want)

	assert.Equal(t, want, kubernetes.ReleaseInputs())
}
