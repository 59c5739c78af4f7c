// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package tests_test

import (
	"go/importer"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestExportedSignaturesNameNothingInternal holds that whoever imports a public package can name every type
// that its functions, methods, fields and variables have.
func TestExportedSignaturesNameNothingInternal(t *testing.T) {
	t.Parallel()
	public := []string{module + "spec", module + "stack", module + "components"}
	load := exportData(t, public...)
	for _, name := range public {
		pkg, err := load.Import(name)
		require.NoError(t, err)
		for _, object := range pkg.Scope().Names() {
			if o := pkg.Scope().Lookup(object); o.Exported() {
				seen := map[types.Type]bool{}
				for _, inner := range internalTypes(o.Type(), seen) {
					assert.Fail(t, "an exported signature names an internal type", "%s.%s: %s", path.Base(name), object, inner)
				}
			}
		}
	}
}

// exportData returns an importer that reads what the compiler exported of the packages.
func exportData(t *testing.T, packages ...string) types.Importer {
	t.Helper()
	out, err := exec.Command("go", append([]string{"list", "-C", "..", "-export", "-deps", "-f", "{{.ImportPath}} {{.Export}}"}, packages...)...).Output()
	require.NoError(t, err)
	files := map[string]string{}
	for line := range strings.Lines(string(out)) {
		if name, file, ok := strings.Cut(strings.TrimSpace(line), " "); ok {
			files[name] = file
		}
	}

	return importer.ForCompiler(token.NewFileSet(), "gc", func(name string) (io.ReadCloser, error) { return os.Open(files[name]) })
}

// internalTypes returns the types of internal packages that a caller meets in t: in parameters, results,
// exported fields and exported methods, as far as they are of this project.
func internalTypes(t types.Type, seen map[types.Type]bool) []string {
	if seen[t] {
		return nil
	}
	seen[t] = true
	t = types.Unalias(t)
	if named, ok := t.(*types.Named); ok && named.Obj().Pkg() != nil {
		pkg := named.Obj().Pkg().Path() + "/"
		switch {
		case !strings.HasPrefix(pkg, module):
			return nil
		case strings.Contains(pkg, "/internal/"):
			return []string{t.String()}
		}
	}
	var found []string
	for _, part := range partsOf(t) {
		found = append(found, internalTypes(part, seen)...)
	}

	return found
}

// partsOf returns the types that a type is made of, as far as another package can reach them.
func partsOf(t types.Type) []types.Type {
	var parts []types.Type
	switch t := t.(type) {
	case *types.Named:
		parts = append(parts, t.Underlying())
		for m := range t.Methods() {
			if m.Exported() {
				parts = append(parts, m.Type())
			}
		}
	case *types.Map:
		parts = append(parts, t.Key(), t.Elem())
	case interface{ Elem() types.Type }:
		parts = append(parts, t.Elem())
	case *types.Signature:
		for v := range t.Params().Variables() {
			parts = append(parts, v.Type())
		}
		for v := range t.Results().Variables() {
			parts = append(parts, v.Type())
		}
	case *types.Struct:
		for f := range t.Fields() {
			if f.Exported() {
				parts = append(parts, f.Type())
			}
		}
	case *types.Interface:
		for m := range t.Methods() {
			parts = append(parts, m.Type())
		}
	}

	return parts
}
