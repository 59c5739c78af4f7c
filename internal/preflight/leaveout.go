// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package preflight

import (
	"reflect"

	"github.com/talos-proxmox/talos-proxmox/internal/check"
	"github.com/talos-proxmox/talos-proxmox/spec"
)

// leaveOut takes the setting at a path out of a configuration, or the nearest block around it that can be left out.
func leaveOut(c *spec.Config, path string) {
	elements := check.Elements(path)
	if len(elements) > 1 && elements[0] == "nodes" {
		for i := range c.Nodes {
			if c.Nodes[i].Name == elements[1] && len(elements) > 2 {
				leaveOutOf(reflect.ValueOf(&c.Nodes[i].Node).Elem(), elements[2:])
			}
		}

		return
	}
	if len(elements) > 1 {
		leaveOutOf(reflect.ValueOf(c).Elem(), elements)
	}
}

// leaveOutOf reports whether something was left out below v.
func leaveOutOf(v reflect.Value, path []string) bool {
	if v.Kind() == reflect.Pointer {
		if v.IsNil() {
			return true
		}
		if len(path) == 0 || !leaveOutOf(v.Elem(), path) {
			v.SetZero()
		}

		return true
	}
	if len(path) == 0 {
		return false
	}
	switch v.Kind() {
	case reflect.Struct:
		for _, f := range spec.Fields(v.Type()) {
			if f.Name != path[0] {
				continue
			}
			field := v.FieldByIndex(f.Index)
			if leaveOutOf(field, path[1:]) {
				return true
			}
			if field.Kind() == reflect.Struct || f.Required {
				return false
			}
			field.SetZero()

			return true
		}
	case reflect.Map:
		key := reflect.ValueOf(path[0])
		if v.MapIndex(key).IsValid() {
			element := reflect.New(v.Type().Elem()).Elem()
			element.Set(v.MapIndex(key))
			if leaveOutOf(element, path[1:]) {
				v.SetMapIndex(key, element)
			} else {
				v.SetMapIndex(key, reflect.Value{})
			}

			return true
		}
	}

	return false
}

// isWritten reports whether a configuration has a setting, or one of a node.
func isWritten(c spec.Config, path string) bool {
	elements := check.Elements(path)
	if elements[0] != "nodes" {
		return has(reflect.ValueOf(c), elements)
	}
	if len(elements) <= 2 {
		return true
	}
	node, ok := c.Node(elements[1])

	return ok && has(reflect.ValueOf(node.Node), elements[2:])
}

// has reports whether there is a value at a path below v, or where it leads into free text.
func has(v reflect.Value, path []string) bool {
	for v.Kind() == reflect.Pointer {
		v = v.Elem()
	}
	if !v.IsValid() || v.IsZero() {
		return false
	}
	if len(path) == 0 {
		return true
	}
	switch v.Kind() {
	case reflect.Struct:
		for _, f := range spec.Fields(v.Type()) {
			if f.Name == path[0] {
				return has(v.FieldByIndex(f.Index), path[1:])
			}
		}

		return false
	case reflect.Map:
		return has(v.MapIndex(reflect.ValueOf(path[0])), path[1:])
	default:
		return true
	}
}
