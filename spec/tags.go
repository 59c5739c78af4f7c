// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package spec

import (
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/talos-proxmox/talos-proxmox/internal/check"
)

// checkTags records every value below v that breaks the enum, min and max tags of its field, and
// every required one that is missing.
func checkTags(path string, v reflect.Value, l *check.List) {
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			checkTags(path, v.Elem(), l)
		}
	case reflect.Struct:
		if !plainStruct(v.Type()) {
			return
		}
		checkFields(path, v, l)
	case reflect.Map:
		if !holdsSettings(v.Type().Elem()) {
			return
		}
		for it := v.MapRange(); it.Next(); {
			checkTags(check.Key(path, it.Key().String()), it.Value(), l)
		}
	case reflect.Slice:
		if !holdsSettings(v.Type().Elem()) {
			return
		}
		for i := range v.Len() {
			checkTags(check.Index(path, i), v.Index(i), l)
		}
	}
}

func checkFields(path string, v reflect.Value, l *check.List) {
	for _, f := range Fields(v.Type()) {
		field := v.FieldByIndex(f.Index)
		if f.Required && field.IsZero() {
			l.Addf(check.Join(path, f.Name), "is required")

			continue
		}
		if message := f.CheckValue(field); message != "" {
			l.Addf(check.Join(path, f.Name), "%s", message)
		}
		if !field.IsZero() && holdsBlocks(f.Type) {
			checkTags(check.Join(path, f.Name), field, l)
		}
	}
}

// holdsBlocks says whether there are settings below a value of the type.
func holdsBlocks(t reflect.Type) bool {
	for t.Kind() == reflect.Map || t.Kind() == reflect.Slice {
		t = t.Elem()
	}

	return t.Kind() == reflect.Struct
}

// CheckValue says what is wrong with the field's value by its enum, min and max tags, or "" when
// nothing is. A nil pointer is fine; text must not be empty.
func (f Field) CheckValue(v reflect.Value) string {
	if v.Kind() == reflect.Pointer {
		if v.IsNil() {
			return ""
		}
		v = v.Elem()
		if v.Kind() == reflect.String && v.Len() == 0 {
			return "is empty: write a value, or remove the key"
		}
	}
	switch v.Kind() {
	case reflect.Slice:
		if list, ok := v.Interface().([]string); ok && slices.Contains(list, "") {
			return "has an empty entry: write a value, or remove it"
		}
	case reflect.String:
		if f.Enum != nil && !slices.Contains(f.Enum, v.String()) {
			message := notOneOf(v.String(), f.Enum)
			if hint := f.Struct.Tag.Get("hint"); hint != "" {
				message += "; " + hint
			}

			return message
		}
	case reflect.Int:
		return f.checkNumber(v.Int())
	}

	return ""
}

func (f Field) checkNumber(n int64) string {
	if f.Enum != nil && !slices.Contains(f.Enum, strconv.FormatInt(n, 10)) {
		return fmt.Sprintf("%d is not one of %s", n, strings.Join(f.Enum, ", "))
	}
	if least, err := strconv.ParseInt(f.min, 10, 64); err == nil && n < least {
		return fmt.Sprintf("%d is too small: the least is %d", n, least)
	}
	if most, err := strconv.ParseInt(f.max, 10, 64); err == nil && n > most {
		return fmt.Sprintf("%d is too large: the most is %d", n, most)
	}

	return ""
}

func notOneOf(text string, allowed []string) string {
	message := fmt.Sprintf("%q is not one of %s", text, strings.Join(allowed, ", "))
	if best := check.Nearest(text, allowed); best != "" {
		message += fmt.Sprintf("; did you mean %q?", best)
	}

	return message
}
