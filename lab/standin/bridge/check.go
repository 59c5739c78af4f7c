// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package bridge

import (
	"fmt"
	"math"
	"strings"

	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/plugin"
)

// Problems collects what is wrong with the inputs of one resource.
type Problems struct {
	name      string
	framework bool
	refused   error
	said      Tree
	found     []plugin.CheckFailure
}

// NewProblems starts a list for the resource called name.
func NewProblems(name string) *Problems { return &Problems{name: name} }

// Add records a problem at path. A reason names no secret value.
func (p *Problems) Add(path Path, format string, args ...any) {
	reason := fmt.Sprintf(format, args...)
	p.found = append(p.found, plugin.CheckFailure{
		Property: resource.PropertyKey(path.String()),
		Reason:   fmt.Sprintf("%s. Examine values at '%s'.", reason, Path{p.name}.String()+"."+path.String()),
	})
}

// Said reports whether the program itself says something at a dotted path, defaults aside.
func (p *Problems) Said(path string) bool { return p.said.Has(path) }

// Refuse ends the check with an error instead of a list of problems.
func (p *Problems) Refuse(err error) {
	if p.refused == nil {
		p.refused = err
	}
}

// Failures returns the problems in the order in which they were found.
func (p *Problems) Failures() []plugin.CheckFailure { return p.found }

// Typecheck compares a value with its type: unknown and missing properties, wrong types.
func (p *Problems) Typecheck(t *Type, v resource.PropertyValue, path Path) {
	switch {
	case v.IsSecret():
		p.Typecheck(t, v.SecretValue().Element, path)
		return
	case v.IsOutput() && v.OutputValue().Known:
		p.Typecheck(t, v.OutputValue().Element, path)
		return
	case v.IsComputed(), v.IsOutput(), v.IsNull(), t.Kind == Any:
		return
	}

	switch t.Kind {
	case Object:
		p.typecheckObject(t, v, path)
	case List:
		if !v.IsArray() {
			p.wrongType(t, v, path)
			return
		}
		for i, e := range v.ArrayValue() {
			p.Typecheck(t.Elem, e, path.With(i))
		}
	case Map:
		if !v.IsObject() {
			p.wrongType(t, v, path)
			return
		}
		for _, k := range v.ObjectValue().StableKeys() {
			p.Typecheck(t.Elem, v.ObjectValue()[k], path.With(string(k)))
		}
	default:
		if !scalar(t, v) {
			p.wrongType(t, v, path)
		}
	}
}

func scalar(t *Type, v resource.PropertyValue) bool {
	switch t.Kind {
	case String:
		return v.IsString()
	case Bool:
		return v.IsBool()
	case Int:
		return v.IsNumber() && v.NumberValue() == math.Trunc(v.NumberValue())
	case Number:
		return v.IsNumber()
	default:
		return true
	}
}

func (p *Problems) wrongType(t *Type, v resource.PropertyValue, path Path) {
	if p.framework {
		p.Refuse(fmt.Errorf("cannot encode resource inputs to call ValidateResourceConfig: objectEncoder failed on "+
			"property %q: %s", snake(path.String()), t.expected(v)))

		return
	}
	p.Add(path, "expected %s type, got %s type", t, v.TypeString())
}

// expected says what another value should have been.
func (t *Type) expected(v resource.PropertyValue) string {
	switch t.Kind {
	case List:
		return "Expected an Array PropertyValue"
	case String:
		return "Expected a string, got: " + v.String()
	}

	return "Expected " + t.String()
}

func (p *Problems) typecheckObject(t *Type, v resource.PropertyValue, path Path) {
	if !v.IsObject() {
		p.wrongType(t, v, path)
		return
	}

	for _, k := range v.ObjectValue().StableKeys() {
		if internal(k) {
			continue
		}

		f, ok := t.Field(string(k))
		if !ok && p.framework {
			continue
		}
		if !ok {
			p.Add(path.With(string(k)), "Invalid or unknown key%s", t.suggest(string(k)))
			continue
		}

		p.Typecheck(f.Type, v.ObjectValue()[k], path.With(string(k)))
	}

	for _, f := range t.Fields {
		if !f.Required || present(v.ObjectValue()[resource.PropertyKey(f.Name)]) {
			continue
		}
		if p.framework {
			p.found = append(p.found, plugin.CheckFailure{
				Reason: fmt.Sprintf("Missing required property '%s'", path.With(f.Name)),
			})
		} else {
			p.Add(path.With(f.Name),
				"Missing required argument. The argument %q is required, but no definition was found", snake(f.Name))
		}
	}
}

func present(v resource.PropertyValue) bool {
	if v.IsSecret() {
		return present(v.SecretValue().Element)
	}

	return v.V != nil
}

// suggest names the property that was probably meant.
func (t *Type) suggest(name string) string {
	best, distance := "", 4
	for _, f := range t.Fields {
		if d := editDistance(strings.ToLower(f.Name), strings.ToLower(name)); d < distance {
			best, distance = f.Name, d
		}
	}

	if best == "" {
		return ""
	}

	return fmt.Sprintf(". Did you mean %q?", best)
}

func editDistance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}

	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := 1
			if a[i] == b[j] {
				cost = 0
			}
			diagonal, row[j+1] = row[j+1], min(row[j+1]+1, row[j]+1, diagonal+cost)
		}
	}

	return row[len(b)]
}

// snake writes a name as the provider under the bridge does: node_name.
func snake(name string) string {
	var b strings.Builder
	for _, r := range name {
		if r >= 'A' && r <= 'Z' {
			b.WriteByte('_')
			r += 'a' - 'A'
		}
		b.WriteRune(r)
	}

	return b.String()
}
