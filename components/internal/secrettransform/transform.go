// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

// Package secrettransform makes secrets of given values wherever they stand in the inputs of resources.
package secrettransform

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"
)

// Register makes every resource that is registered from now on treat the given values as secrets, wherever
// they stand in its inputs, alone or inside a longer text.
//
// It is a transformation in this process: a transform at the engine would lose options such as DeletedWith
// and ReplaceWith on the way back.
func Register(ctx *pulumi.Context, values []string) error {
	values = slices.DeleteFunc(slices.Clone(values), func(v string) bool { return v == "" })
	if len(values) == 0 {
		return nil
	}
	w := wrapper{values: values}
	err := ctx.RegisterStackTransformation(
		func(args *pulumi.ResourceTransformationArgs) *pulumi.ResourceTransformationResult {
			props, changed := w.input(args.Props)
			if !changed {
				return nil
			}

			return &pulumi.ResourceTransformationResult{Props: props, Opts: args.Opts}
		})
	if err != nil {
		return fmt.Errorf("registering the transformation of secret values: %w", err)
	}

	return nil
}

// wrapper makes secrets of texts that contain one of its values.
type wrapper struct{ values []string }

func (w wrapper) holds(text string) bool {
	return slices.ContainsFunc(w.values, func(v string) bool { return strings.Contains(text, v) })
}

// input returns a resource's inputs with the secrets wrapped, and whether there are any; the original stays.
func (w wrapper) input(in pulumi.Input) (pulumi.Input, bool) {
	if in == nil {
		return nil, false
	}
	out, changed := w.value(reflect.ValueOf(in))
	if !changed {
		return in, false
	}
	wrapped, ok := out.Interface().(pulumi.Input)

	return wrapped, ok
}

// value goes through an input; outputs are left alone, since what is in them is not known yet.
func (w wrapper) value(v reflect.Value) (reflect.Value, bool) {
	if _, isOutput := v.Interface().(pulumi.Output); isOutput {
		return v, false
	}
	switch v.Kind() {
	case reflect.String:
		return w.text(v.String(), v)
	case reflect.Pointer:
		return w.pointer(v)
	case reflect.Struct:
		return w.fields(v)
	case reflect.Slice:
		return w.elements(v)
	case reflect.Map:
		return w.entries(v)
	default:
		return v, false
	}
}

// text returns what a string becomes: a secret output, for whatever interface can take one.
func (w wrapper) text(text string, v reflect.Value) (reflect.Value, bool) {
	if !w.holds(text) {
		return v, false
	}

	secret := pulumi.ToSecret(pulumi.String(text).ToStringOutput())

	return reflect.ValueOf(secret.(pulumi.StringOutput)), true
}

func (w wrapper) pointer(v reflect.Value) (reflect.Value, bool) {
	if v.IsNil() {
		return v, false
	}
	inner, changed := w.value(v.Elem())
	if !changed {
		return v, false
	}
	if inner.Type() != v.Type().Elem() {
		return inner, true // an optional text became an output
	}
	out := reflect.New(v.Type().Elem())
	out.Elem().Set(inner)

	return out, true
}

// set puts a changed value where its type fits.
func (w wrapper) set(into, old reflect.Value, put func(reflect.Value)) bool {
	if old.Kind() == reflect.Interface {
		if old.IsNil() {
			return false
		}
		old = old.Elem()
	}
	value, changed := w.value(old)
	if !changed || !value.Type().AssignableTo(into.Type()) {
		return false
	}
	put(value)

	return true
}

func (w wrapper) fields(v reflect.Value) (reflect.Value, bool) {
	out := reflect.New(v.Type()).Elem()
	out.Set(v)
	changed := false
	for i := range v.NumField() {
		if v.Type().Field(i).IsExported() && w.set(out.Field(i), v.Field(i), out.Field(i).Set) {
			changed = true
		}
	}

	return out, changed
}

func (w wrapper) elements(v reflect.Value) (reflect.Value, bool) {
	out := reflect.MakeSlice(v.Type(), v.Len(), v.Len())
	reflect.Copy(out, v)
	changed := false
	for i := range v.Len() {
		if w.set(out.Index(i), v.Index(i), out.Index(i).Set) {
			changed = true
		}
	}

	return out, changed
}

func (w wrapper) entries(v reflect.Value) (reflect.Value, bool) {
	out := reflect.MakeMapWithSize(v.Type(), v.Len())
	changed := false
	zero := reflect.New(v.Type().Elem()).Elem()
	for _, key := range v.MapKeys() {
		out.SetMapIndex(key, v.MapIndex(key))
		if w.set(zero, v.MapIndex(key), func(value reflect.Value) { out.SetMapIndex(key, value) }) {
			changed = true
		}
	}

	return out, changed
}
