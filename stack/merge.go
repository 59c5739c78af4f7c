// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package stack

import (
	"reflect"

	"github.com/talos-proxmox/talos-proxmox/spec"
)

// merge lays src over dst: maps and blocks key by key, lists and values as a whole. Nothing of src
// is shared with dst afterwards when src was cloned before.
func merge(dst, src reflect.Value) {
	switch src.Kind() {
	case reflect.Pointer:
		if src.IsNil() {
			return
		}
		if dst.IsNil() || !isBlock(src.Type().Elem()) {
			dst.Set(src)

			return
		}
		merge(dst.Elem(), src.Elem())
	case reflect.Struct:
		if !isBlock(src.Type()) {
			if !src.IsZero() {
				dst.Set(src)
			}

			return
		}
		for i := range src.NumField() {
			merge(dst.Field(i), src.Field(i))
		}
	case reflect.Map:
		if src.IsNil() {
			return
		}
		if dst.IsNil() {
			dst.Set(reflect.MakeMap(src.Type()))
		}
		for it := src.MapRange(); it.Next(); {
			element := reflect.New(src.Type().Elem()).Elem()
			if old := dst.MapIndex(it.Key()); old.IsValid() {
				element.Set(old)
			}
			merge(element, it.Value())
			dst.SetMapIndex(it.Key(), element)
		}
	default:
		if !src.IsZero() {
			dst.Set(src)
		}
	}
}

// over lays the stronger settings over the weaker ones and shares nothing with either.
func over[T any](weaker, stronger T) T {
	dst, src := spec.Clone(weaker), spec.Clone(stronger)
	merge(reflect.ValueOf(&dst).Elem(), reflect.ValueOf(&src).Elem())

	return dst
}

// isBlock reports whether a type is a block of settings, as opposed to a value such as a secret.
func isBlock(t reflect.Type) bool {
	return t.Kind() == reflect.Struct && t != secretType
}
