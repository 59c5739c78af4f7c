// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package standin_test

import (
	"strings"
	"testing"

	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/talos-proxmox/talos-proxmox/lab/standin/bridge"
	"github.com/talos-proxmox/talos-proxmox/lab/standin/proxmoxve"
	"github.com/talos-proxmox/talos-proxmox/lab/standin/talos"
)

// sample returns a value of a type with every property set.
func sample(t *bridge.Type) resource.PropertyValue {
	switch t.Kind {
	case bridge.Bool:
		return resource.NewProperty(true)
	case bridge.Int:
		return resource.NewProperty(3.0)
	case bridge.Number:
		return resource.NewProperty(2.5)
	case bridge.List:
		return resource.NewProperty([]resource.PropertyValue{sample(t.Elem)})
	case bridge.Map:
		return resource.NewProperty(resource.PropertyMap{"k": sample(t.Elem)})
	case bridge.Object:
		m := resource.PropertyMap{}
		for _, f := range t.Fields {
			m[resource.PropertyKey(f.Name)] = sample(f.Type)
		}
		return resource.NewProperty(m)
	case bridge.String, bridge.Any:
	}

	return resource.NewProperty("x")
}

// wrong returns a value that a type never has.
func wrong(t *bridge.Type) resource.PropertyValue {
	if t.Kind == bridge.String {
		return resource.NewProperty(true)
	}

	return resource.NewProperty("not a " + t.String())
}

// eachPath calls visit for every property of a type, with a sample in which it alone is replaced.
func eachPath(t *bridge.Type, whole resource.PropertyValue, path bridge.Path,
	put func(resource.PropertyValue) resource.PropertyValue,
	visit func(*bridge.Type, bridge.Path, func(resource.PropertyValue) resource.PropertyValue),
) {
	switch t.Kind {
	case bridge.Object:
		for _, f := range t.Fields {
			key := resource.PropertyKey(f.Name)
			replace := func(v resource.PropertyValue) resource.PropertyValue {
				c := whole.ObjectValue().Copy()
				c[key] = v
				return put(resource.NewProperty(c))
			}
			visit(f.Type, path.With(f.Name), replace)
			eachPath(f.Type, whole.ObjectValue()[key], path.With(f.Name), replace, visit)
		}
	case bridge.List:
		replace := func(v resource.PropertyValue) resource.PropertyValue {
			return put(resource.NewProperty([]resource.PropertyValue{v}))
		}
		eachPath(t.Elem, whole.ArrayValue()[0], path.With(0), replace, visit)
	default:
	}
}

// Every property of every kind: right values pass, a wrong type and a misspelling are found at their path.
func TestEveryPropertyIsChecked(t *testing.T) {
	t.Parallel()

	checked := 0
	for _, pkg := range []*bridge.Package{proxmoxve.Package(), talos.Package()} {
		for token, r := range pkg.Resources {
			typ, err := bridge.InputsOf(r.Args)
			require.NoError(t, err)
			whole := sample(typ)

			p := bridge.NewProblems("r")
			p.Typecheck(typ, whole, nil)
			require.Empty(t, p.Failures(), token)

			same := func(v resource.PropertyValue) resource.PropertyValue { return v }
			eachPath(typ, whole, nil, same, func(ft *bridge.Type, path bridge.Path,
				replace func(resource.PropertyValue) resource.PropertyValue,
			) {
				if ft.Kind == bridge.Any {
					return
				}
				checked++

				p := bridge.NewProblems("r")
				p.Typecheck(typ, replace(wrong(ft)), nil)
				require.Len(t, p.Failures(), 1, "%s: %s", token, path)
				assert.Equal(t, path.String(), string(p.Failures()[0].Property), token)
				assert.True(t, strings.HasPrefix(p.Failures()[0].Reason, "expected "), p.Failures()[0].Reason)

				p = bridge.NewProblems("r")
				p.Typecheck(typ, replace(resource.MakeComputed(resource.NewProperty(""))), nil)
				assert.Empty(t, p.Failures(), "%s: an unknown %s passes", token, path)

				p = bridge.NewProblems("r")
				p.Typecheck(typ, replace(resource.MakeSecret(wrong(ft))), nil)
				require.Len(t, p.Failures(), 1, "%s: a secret %s is checked too", token, path)
				assert.NotContains(t, p.Failures()[0].Reason, "not a", "a reason holds no value")

				if ft.Kind == bridge.Object {
					p = bridge.NewProblems("r")
					bad := sample(ft).ObjectValue()
					bad["nosuch"] = resource.NewProperty(1.0)
					p.Typecheck(typ, replace(resource.NewProperty(bad)), nil)
					require.Len(t, p.Failures(), 1)
					assert.Equal(t, path.With("nosuch").String(), string(p.Failures()[0].Property))
				}
			})
		}
	}

	assert.Greater(t, checked, 200, "the SDKs have that many properties")
}
