// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package bridge

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"
)

// Kind names the kind of a value.
type Kind int

// The kinds of values.
const (
	Any Kind = iota
	String
	Bool
	Int
	Number
	List
	Map
	Object
)

// Type describes the type of a property, read from an SDK's Go type.
type Type struct {
	Kind   Kind
	Elem   *Type   // of lists and maps
	Fields []Field // of objects, sorted by name
}

// Field describes a property of an object.
type Field struct {
	Name     string
	Type     *Type
	Required bool
}

// Field finds a property by name.
func (t *Type) Field(name string) (Field, bool) {
	i, ok := slices.BinarySearchFunc(t.Fields, name, func(f Field, n string) int { return strings.Compare(f.Name, n) })
	if !ok {
		return Field{}, false
	}

	return t.Fields[i], true
}

func (t *Type) String() string {
	switch t.Kind {
	case String:
		return "string"
	case Bool:
		return "boolean"
	case Int:
		return "integer"
	case Number:
		return "number"
	case List:
		return "[]" + t.Elem.String()
	case Map:
		return "map of " + t.Elem.String()
	case Object:
		return "object"
	case Any:
	}

	return "any"
}

// InputsOf reads the type of a resource's or a provider's inputs from the SDK's Args.
func InputsOf(args pulumi.Input) (*Type, error) { return TypeOf(args.ElementType()) }

// TypeOf reads a plain SDK type: structs with "pulumi" tags, pointers for optional values. Whether a
// list or a map is required does not show in it.
func TypeOf(t reflect.Type) (*Type, error) {
	if t.Kind() == reflect.Pointer {
		return TypeOf(t.Elem())
	}

	// The element type of a resource's own property is what its Output carries.
	if t.Implements(reflect.TypeFor[pulumi.Output]()) && t.Kind() == reflect.Struct {
		out, ok := reflect.Zero(t).Interface().(pulumi.Output)
		if !ok {
			return nil, fmt.Errorf("%s is no output", t)
		}

		return TypeOf(out.ElementType())
	}

	switch t.Kind() {
	case reflect.String:
		return &Type{Kind: String}, nil
	case reflect.Bool:
		return &Type{Kind: Bool}, nil
	case reflect.Int, reflect.Int32, reflect.Int64:
		return &Type{Kind: Int}, nil
	case reflect.Float32, reflect.Float64:
		return &Type{Kind: Number}, nil
	case reflect.Interface:
		return &Type{Kind: Any}, nil
	case reflect.Slice, reflect.Map:
		return container(t)
	case reflect.Struct:
		return object(t)
	default:
		return nil, fmt.Errorf("%s: a property cannot be of this type", t)
	}
}

func container(t reflect.Type) (*Type, error) {
	elem, err := TypeOf(t.Elem())
	if err != nil {
		return nil, err
	}

	kind := List
	if t.Kind() == reflect.Map {
		kind = Map
	}

	return &Type{Kind: kind, Elem: elem}, nil
}

func object(t reflect.Type) (*Type, error) {
	o := &Type{Kind: Object}

	for i := range t.NumField() {
		f := t.Field(i)

		name, _, _ := strings.Cut(f.Tag.Get("pulumi"), ",")
		if name == "" {
			continue
		}

		ft, err := TypeOf(f.Type)
		if err != nil {
			return nil, fmt.Errorf("%s.%s: %w", t.Name(), f.Name, err)
		}

		o.Fields = append(o.Fields, Field{Name: name, Type: ft, Required: required(f.Type)})
	}

	slices.SortFunc(o.Fields, func(a, b Field) int { return strings.Compare(a.Name, b.Name) })

	return o, nil
}

func required(t reflect.Type) bool {
	switch t.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Map, reflect.Interface:
		return false
	default:
		return true
	}
}

// ObjectOf makes an object type of optional properties.
func ObjectOf(fields map[string]*Type) *Type {
	o := &Type{Kind: Object}
	for name, t := range fields {
		o.Fields = append(o.Fields, Field{Name: name, Type: t})
	}
	slices.SortFunc(o.Fields, func(a, b Field) int { return strings.Compare(a.Name, b.Name) })

	return o
}

// Requiring makes properties of an object required.
func (t *Type) Requiring(names ...string) *Type { return require(t, names) }
