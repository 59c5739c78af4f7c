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
	"reflect"
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

// TestConstructorsHaveOneForm holds that whoever knows one constructor of the library knows all: context, name, a pointer
// to args and options; what comes of it, and an error. Options are Pulumi's alone, and what another resource may produce
// has the tag that names it in every language.
func TestConstructorsHaveOneForm(t *testing.T) {
	t.Parallel()
	const sdk = "github.com/pulumi/pulumi/sdk/v3/go/pulumi."
	pkg, err := exportData(t, module+"components").Import(module + "components")
	require.NoError(t, err)
	constructors := 0
	for _, name := range pkg.Scope().Names() {
		o, isFunc := pkg.Scope().Lookup(name).(*types.Func)
		if !isFunc || !o.Exported() {
			continue
		}
		signature := o.Signature()
		if signature.Params().Len() == 0 || signature.Params().At(0).Type().String() != "*"+sdk+"Context" {
			continue
		}
		constructors++
		require.Equal(t, 4, signature.Params().Len(), name)
		require.Equal(t, 2, signature.Results().Len(), name)
		made := strings.TrimPrefix(name, "New")
		assert.Equal(t, "string", signature.Params().At(1).Type().String(), name)
		assert.Equal(t, "*"+module+"components."+made+"Args", signature.Params().At(2).Type().String(), name)
		assert.Equal(t, "[]"+sdk+"ResourceOption", signature.Params().At(3).Type().String(), name)
		assert.True(t, signature.Variadic(), name)
		assert.Equal(t, "error", signature.Results().At(1).Type().String(), name)
		tagged(t, made+"Args", signature.Params().At(2).Type(), sdk, "Input")
		tagged(t, made, signature.Results().At(0).Type(), sdk, "Output")
	}
	assert.GreaterOrEqual(t, constructors, 10)
}

// tagged asserts that every exported field of a struct of ours which is an input, or an output, has a pulumi tag.
func tagged(t *testing.T, name string, pointer types.Type, sdk, suffix string) {
	t.Helper()
	made, _ := pointer.(*types.Pointer)
	require.NotNil(t, made, name)
	named, _ := made.Elem().(*types.Named)
	require.NotNil(t, named, name)
	fields, _ := named.Underlying().(*types.Struct)
	if fields == nil || !strings.HasPrefix(named.Obj().Pkg().Path()+"/", module) {
		return
	}
	for i := range fields.NumFields() {
		field := fields.Field(i)
		kind := field.Type().String()
		if m, isMap := field.Type().(*types.Map); isMap {
			kind = m.Elem().String()
		}
		if field.Exported() && strings.HasPrefix(kind, sdk) && strings.HasSuffix(kind, suffix) {
			assert.NotEmpty(t, reflect.StructTag(fields.Tag(i)).Get("pulumi"), "%s.%s", name, field.Name())
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
