// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package tests_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/mod/modfile"

	"github.com/talos-proxmox/talos-proxmox/internal/versions"
	"github.com/talos-proxmox/talos-proxmox/spec"
)

// elsewhere names the files outside internal/versions whose texts have a version in them, and why.
func elsewhere() map[string]string {
	const example = "an example in what a refusal says"

	return map[string]string{
		"spec/talos.go":                         "a tag holds literals only; TestDefaultVersionsAreThose ties it",
		"spec/kubernetes.go":                    "a tag holds literals only; TestDefaultVersionsAreThose ties it",
		"spec/etcdbackup.go":                    "a tag holds literals only",
		"internal/rules/addons/cni.go":          example,
		"internal/rules/addons/gitops.go":       example,
		"internal/rules/talos/strict.go":        example,
		"internal/rules/talos/kubeletfields.go": "the release that brought each field of the kubelet's configuration",
		"internal/rules/scope/values.go":        example,
		"internal/cluster/clustertest/fake.go":  "a cluster that tests make up",
		"internal/rules/vms/storage.go":         "the version of a TPM, a setting",
		"spec/vm.go":                            "the version of a TPM, a setting",
		"internal/proxmox/inspect.go":           "the version of a TPM, where Proxmox VE says none",
	}
}

// number finds numbers that are joined by points, with the v before them.
var number = regexp.MustCompile(`v?[0-9]+(\.[0-9]+)+`)

// versionIn returns the version in a text, empty for none: three numbers, or two after a v. Addresses
// and networks have four.
func versionIn(text string) string {
	for _, found := range number.FindAllString(text, -1) {
		points := strings.Count(found, ".")
		if points == 2 || points == 1 && strings.HasPrefix(found, "v") {
			return found
		}
	}

	return ""
}

// TestVersionsStandInOnePlace lists every text of the program with a version in it, and every contract
// written out, that stands outside internal/versions.
func TestVersionsStandInOnePlace(t *testing.T) {
	t.Parallel()
	allowed, used := elsewhere(), map[string]bool{}
	root, apart := "..", []string{"lab", "tests", "tools", "bin", "examples", "internal/versions"}
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		name, _ := filepath.Rel(root, path)
		name = filepath.ToSlash(name)
		switch {
		case err != nil:
			return err
		case entry.IsDir() && (slices.Contains(apart, name) || entry.Name() == "testdata" || name != "." && strings.HasPrefix(entry.Name(), ".")):
			return fs.SkipDir
		case !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go"):
			return nil
		}
		for _, place := range versionsOf(t, path) {
			used[name] = true
			assert.NotEmptyf(t, allowed[name], "%s has the version %s: it belongs into internal/versions", name, place)
		}

		return nil
	})
	require.NoError(t, err)
	for name := range allowed {
		assert.Truef(t, used[name], "%s has no version any more: take it off the list", name)
	}
}

// versionsOf returns the versions in a file's texts and tags, and the contracts that it writes out.
func versionsOf(t *testing.T, path string) []string {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
	require.NoError(t, err)
	var found []string
	ast.Inspect(file, func(node ast.Node) bool {
		switch n := node.(type) {
		case *ast.ImportSpec:
			return false
		case *ast.BasicLit:
			if text, err := strconv.Unquote(n.Value); err == nil && n.Kind == token.STRING {
				if version := versionIn(text); version != "" {
					found = append(found, version)
				}
			}
		case *ast.CompositeLit:
			if kind, ok := n.Type.(*ast.SelectorExpr); ok && kind.Sel.Name == "Contract" && len(n.Elts) > 0 {
				found = append(found, "versions.Contract{…}")
			}
		}

		return true
	})

	return found
}

// TestDefaultVersionsAreThose ties the defaults in the tags of the stack file to those of the tables.
func TestDefaultVersionsAreThose(t *testing.T) {
	t.Parallel()
	tag := func(of reflect.Type) string {
		field, ok := of.FieldByName("Version")
		require.True(t, ok)

		return field.Tag.Get("default")
	}
	assert.Equal(t, versions.DefaultTalos, tag(reflect.TypeFor[spec.Talos]()))
	assert.Equal(t, versions.DefaultKubernetes, tag(reflect.TypeFor[spec.Kubernetes]()))

	talos, err := versions.ParseTalos(versions.DefaultTalos)
	require.NoError(t, err)
	kubernetes, err := versions.ParseKubernetes(versions.DefaultKubernetes)
	require.NoError(t, err)
	require.NoError(t, kubernetes.FitsTalos(talos))
	images, exact := versions.ImagesOf(versions.DefaultTalos)
	assert.True(t, exact)
	assert.Equal(t, images.CoreDNS, versions.CoreDNSImage)
}

// TestPluginsAreThoseOfTheirSDKs ties the plugins' versions to the SDKs of the program and of the lab.
func TestPluginsAreThoseOfTheirSDKs(t *testing.T) {
	t.Parallel()
	for _, file := range []string{"../go.mod", "../lab/go.mod"} {
		required := required(t, file)
		for module, version := range map[string]string{
			"github.com/muhlba91/pulumi-proxmoxve/sdk/v6": versions.ProxmoxPlugin,
			"github.com/pulumiverse/pulumi-talos/sdk":     versions.TalosPlugin,
			"github.com/pulumi/pulumi-kubernetes/sdk/v4":  versions.KubernetesPlugin,
		} {
			assert.Equalf(t, "v"+version, required[module], "%s of %s", module, file)
		}
	}
}

// TestLabAndProgramShareLibraries holds that the lab's Talos and Kubernetes are the program's.
func TestLabAndProgramShareLibraries(t *testing.T) {
	t.Parallel()
	program, lab := required(t, "../go.mod"), required(t, "../lab/go.mod")
	for _, module := range []string{
		"github.com/siderolabs/talos/pkg/machinery", "github.com/siderolabs/image-factory", "github.com/pulumi/pulumi/sdk/v3",
		"k8s.io/client-go", "k8s.io/api", "helm.sh/helm/v3",
	} {
		assert.NotEmpty(t, program[module], module)
		assert.Equal(t, program[module], lab[module], module)
	}
}

// required returns the versions that a go.mod asks for, by module.
func required(t *testing.T, path string) map[string]string {
	t.Helper()
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	file, err := modfile.Parse(path, data, nil)
	require.NoError(t, err)
	found := map[string]string{}
	for _, r := range file.Require {
		found[r.Mod.Path] = r.Mod.Version
	}

	return found
}
