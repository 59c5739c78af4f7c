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
		for _, f := range Fields(v.Type()) {
			field := v.FieldByIndex(f.Index)
			at := check.Join(path, f.Name)
			if f.Required && field.IsZero() {
				l.Addf(at, "is required")

				continue
			}
			if message := CheckValue(f.Struct.Tag, field); message != "" {
				l.Addf(at, "%s", message)
			}
			checkTags(at, field, l)
		}
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

// CheckValue says what is wrong with a value by its field's enum, min and max tags; "" when nothing
// is. A nil pointer is fine.
func CheckValue(tag reflect.StructTag, v reflect.Value) string {
	if v.Kind() == reflect.Pointer {
		if v.IsNil() {
			return ""
		}
		v = v.Elem()
	}
	if enum := tag.Get("enum"); enum != "" {
		allowed, text := strings.Split(enum, ","), fmt.Sprint(v.Interface())
		if !slices.Contains(allowed, text) {
			message := notOneOf(text, allowed)
			if hint := tag.Get("hint"); hint != "" {
				message += "; " + hint
			}

			return message
		}
	}
	if v.Kind() != reflect.Int && v.Kind() != reflect.Int64 {
		return ""
	}
	if least, err := strconv.ParseInt(tag.Get("min"), 10, 64); err == nil && v.Int() < least {
		return fmt.Sprintf("%d is too small: the least is %d", v.Int(), least)
	}
	if most, err := strconv.ParseInt(tag.Get("max"), 10, 64); err == nil && v.Int() > most {
		return fmt.Sprintf("%d is too large: the most is %d", v.Int(), most)
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
