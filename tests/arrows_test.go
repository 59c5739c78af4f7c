// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package tests_test

import (
	"go/types"
	"maps"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/tools/go/packages"
)

// TestFilesOfTheComponentsPointOneWay holds that the files of each package below components build on each other in one
// direction: whoever reads one never has to come back to it from a file that it uses.
func TestFilesOfTheComponentsPointOneWay(t *testing.T) {
	t.Parallel()
	const mode = packages.NeedName | packages.NeedSyntax | packages.NeedTypes | packages.NeedTypesInfo | packages.NeedImports
	loaded, err := packages.Load(&packages.Config{Mode: mode, Dir: ".."}, "./components/...")
	require.NoError(t, err)
	require.NotEmpty(t, loaded)
	for _, p := range loaded {
		require.Empty(t, p.Errors)
		uses := filesUsed(p)
		for _, file := range slices.Sorted(maps.Keys(uses)) {
			assert.Falsef(t, leadsTo(uses, file, file, map[string]bool{}),
				"%s: %s uses files that use it: %v", p.PkgPath, file, slices.Sorted(maps.Keys(uses[file])))
		}
	}
}

// filesUsed returns, by file, the other files of a package whose types, functions, methods, constants and variables it uses.
func filesUsed(p *packages.Package) map[string]map[string]bool {
	uses := map[string]map[string]bool{}
	for name, object := range p.TypesInfo.Uses {
		method, isFunction := object.(*types.Func)
		isMethod := isFunction && method.Signature().Recv() != nil
		if object.Pkg() != p.Types || !isMethod && object.Parent() != p.Types.Scope() {
			continue
		}
		from, to := p.Fset.Position(name.Pos()).Filename, p.Fset.Position(object.Pos()).Filename
		if from = filepath.Base(from); from != filepath.Base(to) {
			if uses[from] == nil {
				uses[from] = map[string]bool{}
			}
			uses[from][filepath.Base(to)] = true
		}
	}

	return uses
}

// leadsTo reports whether a file uses another, itself or by way of others.
func leadsTo(uses map[string]map[string]bool, from, to string, seen map[string]bool) bool {
	for file := range uses[from] {
		if file == to {
			return true
		}
		if !seen[file] {
			seen[file] = true
			if leadsTo(uses, file, to, seen) {
				return true
			}
		}
	}

	return false
}
