// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package rules

import (
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/talos-proxmox/talos-proxmox/internal/check"
	"github.com/talos-proxmox/talos-proxmox/internal/rules/scope"
	"github.com/talos-proxmox/talos-proxmox/spec"
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
		if !spec.HoldsSettings(v.Type()) {
			return
		}
		checkFields(path, v, l)
	case reflect.Map:
		if !spec.HoldsSettings(v.Type().Elem()) {
			return
		}
		for it := v.MapRange(); it.Next(); {
			checkTags(check.Key(path, it.Key().String()), it.Value(), l)
		}
	case reflect.Slice:
		if !spec.HoldsSettings(v.Type().Elem()) {
			return
		}
		for i := range v.Len() {
			checkTags(check.Index(path, i), v.Index(i), l)
		}
	}
}

func checkFields(path string, v reflect.Value, l *check.List) {
	for _, f := range spec.Fields(v.Type()) {
		field := v.FieldByIndex(f.Index)
		if f.Required && field.IsZero() {
			l.Addf(check.Join(path, f.Name), "is required")

			continue
		}
		if message := CheckValue(f, field); message != "" {
			l.Addf(check.Join(path, f.Name), "%s", message)
		}
		if !field.IsZero() && spec.HoldsBlocks(f.Type) {
			checkTags(check.Join(path, f.Name), field, l)
		}
	}
}

// CheckValue says what is wrong with the field's value by its enum, min and max tags, or "" when
// nothing is. A nil pointer is fine; text must not be empty.
func CheckValue(f spec.Field, v reflect.Value) string {
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
			message := scope.NotOneOf(v.String(), f.Enum)
			if hint := f.Struct.Tag.Get("hint"); hint != "" {
				message += "; " + hint
			}

			return message
		}
	case reflect.Int:
		return checkNumber(f, v.Int())
	}

	return ""
}

func checkNumber(f spec.Field, n int64) string {
	if f.Enum != nil && !slices.Contains(f.Enum, strconv.FormatInt(n, 10)) {
		return fmt.Sprintf("%d is not one of %s", n, strings.Join(f.Enum, ", "))
	}
	if least, err := strconv.ParseInt(f.Min, 10, 64); err == nil && n < least {
		return fmt.Sprintf("%d is too small: the least is %d", n, least)
	}
	if most, err := strconv.ParseInt(f.Max, 10, 64); err == nil && n > most {
		return fmt.Sprintf("%d is too large: the most is %d", n, most)
	}

	return ""
}
