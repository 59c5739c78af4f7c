// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package spec

import (
	"encoding"
	"reflect"
	"strconv"
	"strings"
)

// Clone returns a deep copy of v: no pointer, map or slice is shared.
func Clone[T any](v T) T {
	dst := reflect.New(reflect.TypeFor[T]()).Elem()
	cloneInto(dst, reflect.ValueOf(&v).Elem())

	return dst.Interface().(T)
}

func cloneInto(dst, src reflect.Value) {
	switch src.Kind() {
	case reflect.Pointer:
		if !src.IsNil() {
			dst.Set(reflect.New(src.Type().Elem()))
			cloneInto(dst.Elem(), src.Elem())
		}
	case reflect.Struct:
		if !isSettings(src.Type()) {
			dst.Set(src)

			return
		}
		for i := range src.NumField() {
			cloneInto(dst.Field(i), src.Field(i))
		}
	case reflect.Map:
		if src.IsNil() {
			return
		}
		dst.Set(reflect.MakeMapWithSize(src.Type(), src.Len()))
		for it := src.MapRange(); it.Next(); {
			v := reflect.New(src.Type().Elem()).Elem()
			cloneInto(v, it.Value())
			dst.SetMapIndex(it.Key(), v)
		}
	case reflect.Slice:
		if src.IsNil() {
			return
		}
		dst.Set(reflect.MakeSlice(src.Type(), src.Len(), src.Len()))
		for i := range src.Len() {
			cloneInto(dst.Index(i), src.Index(i))
		}
	default:
		dst.Set(src)
	}
}

// plainStruct reports whether a struct has only exported fields, and thus is one of settings.
func plainStruct(t reflect.Type) bool {
	for i := range t.NumField() {
		if !t.Field(i).IsExported() {
			return false
		}
	}

	return true
}

// isSettings reports what plainStruct does, quickly for the blocks of a [Config].
func isSettings(t reflect.Type) bool {
	_, ok := known[t]

	return ok || plainStruct(t)
}

var textUnmarshaler = reflect.TypeFor[encoding.TextUnmarshaler]()

// FillDefaults gives every field below the pointers that is unset and has a default tag its default.
// A block that was left out stays left out.
func FillDefaults(pointers ...any) {
	for _, p := range pointers {
		fillDefaults(reflect.ValueOf(p).Elem())
	}
}

func fillDefaults(v reflect.Value) {
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			fillDefaults(v.Elem())
		}
	case reflect.Struct:
		if isSettings(v.Type()) {
			fillFields(v)
		}
	case reflect.Map:
		if !HoldsSettings(v.Type().Elem()) {
			return
		}
		for it := v.MapRange(); it.Next(); {
			e := reflect.New(v.Type().Elem()).Elem()
			e.Set(it.Value())
			fillDefaults(e)
			v.SetMapIndex(it.Key(), e)
		}
	case reflect.Slice:
		if !HoldsSettings(v.Type().Elem()) {
			return
		}
		for i := range v.Len() {
			fillDefaults(v.Index(i))
		}
	}
}

// HoldsSettings reports whether the type is a block of settings, as opposed to a value such as a secret.
func HoldsSettings(t reflect.Type) bool { return t.Kind() == reflect.Struct && plainStruct(t) }

// HoldsBlocks reports whether there are settings below a value of the type.
func HoldsBlocks(t reflect.Type) bool {
	for t.Kind() == reflect.Map || t.Kind() == reflect.Slice {
		t = t.Elem()
	}

	return t.Kind() == reflect.Struct
}

func fillFields(v reflect.Value) {
	for _, field := range Fields(v.Type()) {
		f := v.FieldByIndex(field.Index)
		if field.Default != "" && f.IsZero() {
			setText(f, field.Default)

			continue
		}
		if HoldsBlocks(field.Type) && (f.Kind() == reflect.Struct || !f.IsZero()) {
			fillDefaults(f)
		}
	}
}

// setText sets a field of a scalar kind, a pointer to one, or a list of texts from a tag. The tags
// are part of the types; a test reads every one of them.
func setText(f reflect.Value, text string) bool {
	switch {
	case f.Kind() == reflect.Pointer:
		p := reflect.New(f.Type().Elem())
		ok := setText(p.Elem(), text)
		f.Set(p)

		return ok
	case f.Addr().Type().Implements(textUnmarshaler):
		u, _ := f.Addr().Interface().(encoding.TextUnmarshaler)

		return u.UnmarshalText([]byte(text)) == nil
	case f.Kind() == reflect.String:
		f.SetString(text)
	case f.Kind() == reflect.Bool:
		b, err := strconv.ParseBool(text)
		f.SetBool(b)

		return err == nil
	case f.Kind() == reflect.Int:
		n, err := strconv.ParseInt(text, 10, 64)
		f.SetInt(n)

		return err == nil
	case f.Kind() == reflect.Slice && f.Type().Elem().Kind() == reflect.String:
		for _, part := range strings.Split(text, ",") {
			f.Set(reflect.Append(f, reflect.ValueOf(part)))
		}
	default:
		return false
	}

	return true
}
