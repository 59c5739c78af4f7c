// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package bridge

import (
	"strconv"
	"strings"

	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
)

// Tree holds a plain view of properties: maps, lists, strings, float64s, bools; secrets opened, unknown
// values left out. What it holds may be secret and must not be put into texts.
type Tree map[string]any

// TreeOf opens properties.
func TreeOf(props resource.PropertyMap) Tree {
	t, _ := plain(resource.NewProperty(props)).(map[string]any)
	return t
}

func plain(v resource.PropertyValue) any {
	switch {
	case v.IsSecret():
		return plain(v.SecretValue().Element)
	case v.IsOutput():
		if !v.OutputValue().Known {
			return nil
		}
		return plain(v.OutputValue().Element)
	case v.IsObject():
		m := map[string]any{}
		for k, e := range v.ObjectValue() {
			if p := plain(e); p != nil && !internal(k) {
				m[string(k)] = p
			}
		}
		return m
	case v.IsArray():
		l := make([]any, len(v.ArrayValue()))
		for i, e := range v.ArrayValue() {
			l[i] = plain(e)
		}
		return l
	case v.IsString(), v.IsNumber(), v.IsBool():
		return v.V
	}

	return nil
}

// internal tells the bridge's own bookkeeping from properties.
func internal(k resource.PropertyKey) bool {
	return strings.HasPrefix(string(k), "__")
}

// At finds what is at a dotted path ("cpu.cores", "disks.0.size"), nil when there is nothing.
func (t Tree) At(path string) any {
	var v any = map[string]any(t)

	for step := range strings.SplitSeq(path, ".") {
		switch c := v.(type) {
		case map[string]any:
			v = c[step]
		case []any:
			i, err := strconv.Atoi(step)
			if err != nil || i < 0 || i >= len(c) {
				return nil
			}
			v = c[i]
		default:
			return nil
		}
	}

	return v
}

// Has reports whether there is a value at path.
func (t Tree) Has(path string) bool { return t.At(path) != nil }

// Str returns the string at path, "" without one.
func (t Tree) Str(path string) string {
	s, _ := t.At(path).(string)
	return s
}

// Int returns the number at path, 0 without one.
func (t Tree) Int(path string) int {
	switch n := t.At(path).(type) {
	case float64:
		return int(n)
	case int:
		return n
	}

	return 0
}

// Bool returns the boolean at path, false without one.
func (t Tree) Bool(path string) bool {
	b, _ := t.At(path).(bool)
	return b
}

// Strs returns the strings of the list at path.
func (t Tree) Strs(path string) []string {
	l, _ := t.At(path).([]any)

	var out []string
	for _, e := range l {
		if s, ok := e.(string); ok {
			out = append(out, s)
		}
	}

	return out
}

// List returns the objects of the list at path.
func (t Tree) List(path string) []Tree {
	l, _ := t.At(path).([]any)

	var out []Tree
	for _, e := range l {
		switch o := e.(type) {
		case map[string]any:
			out = append(out, o)
		case Tree:
			out = append(out, o)
		}
	}

	return out
}

// Sub returns the object at path, empty without one.
func (t Tree) Sub(path string) Tree {
	m, _ := t.At(path).(map[string]any)
	return m
}

// Properties makes properties of plain values.
func (t Tree) Properties() resource.PropertyMap {
	props := resource.PropertyMap{}
	for k, v := range t {
		if p := property(v); !p.IsNull() {
			props[resource.PropertyKey(k)] = p
		}
	}

	return props
}

func property(v any) resource.PropertyValue {
	switch c := v.(type) {
	case nil:
		return resource.NewNullProperty()
	case Tree:
		return resource.NewProperty(c.Properties())
	case map[string]any:
		return resource.NewProperty(Tree(c).Properties())
	case []any:
		l := make([]resource.PropertyValue, len(c))
		for i, e := range c {
			l[i] = property(e)
		}
		return resource.NewProperty(l)
	case []Tree:
		l := make([]resource.PropertyValue, len(c))
		for i, e := range c {
			l[i] = property(e)
		}
		return resource.NewProperty(l)
	case []string:
		l := make([]resource.PropertyValue, len(c))
		for i, e := range c {
			l[i] = resource.NewProperty(e)
		}
		return resource.NewProperty(l)
	case int:
		return resource.NewProperty(float64(c))
	case resource.PropertyValue:
		return c
	}

	return resource.NewPropertyValue(v)
}
