// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package spec

import (
	"reflect"
	"strings"
)

// Key describes one setting that can be written.
type Key struct {
	// Path of the setting; "*" stands for a name of the user's choice and "[]" for a list's
	// element: "nodes.*.networks.*.routes[].gateway".
	Path string
	// Owner is the Go type that has the field, Field the field's Go name.
	Owner reflect.Type
	// Field is the field's Go name.
	Field string
	// Type is the field's type without pointers.
	Type reflect.Type
	// Required settings have no default and must be written where their block is.
	Required bool
	// Default as it would be written; empty when there is none or it is derived.
	Default string
	// Enum are the allowed values; nil when any is.
	Enum []string
	// Min and Max bound a number, as text; empty when nothing does.
	Min, Max string
}

// Leaf reports whether the setting is a value rather than a block of further settings.
func (k Key) Leaf() bool {
	t := k.Type
	for t.Kind() == reflect.Map || t.Kind() == reflect.Slice {
		t = t.Elem()
	}

	return !HoldsSettings(t)
}

// KeysOf returns all settings of a struct type, below path, in the order of the fields.
func KeysOf(t reflect.Type, path string) []Key {
	var keys []Key
	for _, f := range Fields(t) {
		k := Key{
			Path: strings.TrimPrefix(path+"."+f.Name, "."), Owner: f.Owner, Field: f.Struct.Name, Type: f.Type, Required: f.Required,
			Default: f.Default, Min: f.Min, Max: f.Max, Enum: f.Enum,
		}
		keys = append(keys, k)

		below, at := f.Type, k.Path
		for below.Kind() == reflect.Map || below.Kind() == reflect.Slice {
			if below.Kind() == reflect.Map {
				at += ".*"
			} else {
				at += "[]"
			}
			below = below.Elem()
		}
		if HoldsSettings(below) {
			keys = append(keys, KeysOf(below, at)...)
		}
	}

	return keys
}

// Field describes a field of a settings struct; fields of inline structs count as the struct's own.
type Field struct {
	// Name is the key.
	Name string
	// Index is the way to the field, for [reflect.Value.FieldByIndex].
	Index []int
	// Owner is the struct type that declares it.
	Owner reflect.Type
	// Struct is its declaration.
	Struct reflect.StructField
	// Type is its type without pointers.
	Type reflect.Type
	// Required says that it must be written.
	Required bool
	// Enum are the allowed values; nil when any is.
	Enum []string
	// Default as it would be written; empty when there is none or it is derived.
	Default string
	// Min and Max bound a number, as text; empty when nothing does.
	Min, Max string
}

// known are the fields of every block of settings of a [Config], read once.
var known = readFields(map[reflect.Type][]Field{}, reflect.TypeFor[Config]())

func readFields(all map[reflect.Type][]Field, t reflect.Type) map[reflect.Type][]Field {
	for t.Kind() == reflect.Pointer || t.Kind() == reflect.Map || t.Kind() == reflect.Slice {
		t = t.Elem()
	}
	if _, done := all[t]; done || !HoldsSettings(t) {
		return all
	}
	all[t] = fieldsOf(t)
	for i := range t.NumField() { // inline structs too: they are blocks of their own elsewhere
		readFields(all, t.Field(i).Type)
	}

	return all
}

// Fields returns the fields of a settings struct, in the order of their declaration. The slice is shared:
// do not change it.
func Fields(t reflect.Type) []Field {
	if fields, ok := known[t]; ok {
		return fields
	}

	return fieldsOf(t)
}

func fieldsOf(t reflect.Type) []Field {
	var fields []Field
	for i := range t.NumField() {
		f := t.Field(i)
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		if strings.Contains(options, "inline") {
			for _, inner := range fieldsOf(f.Type) {
				inner.Index = append([]int{i}, inner.Index...)
				fields = append(fields, inner)
			}

			continue
		}
		bare := f.Type
		if bare.Kind() == reflect.Pointer {
			bare = bare.Elem()
		}
		field := Field{
			Name: name, Index: []int{i}, Owner: t, Struct: f, Type: bare,
			Required: !strings.Contains(options, "omitempty"), Min: f.Tag.Get("min"), Max: f.Tag.Get("max"),
			Default: f.Tag.Get("default"),
		}
		if enum := f.Tag.Get("enum"); enum != "" {
			field.Enum = strings.Split(enum, ",")
		}
		fields = append(fields, field)
	}

	return fields
}
