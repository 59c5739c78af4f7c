// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

// Package preflight finds everything that can be known of a configuration without a network, in one report: what the rules
// say, and what Talos says of each node's machine configuration, as far as it does not follow from what the rules say.
package preflight

import (
	"reflect"
	"strings"

	"github.com/talos-proxmox/talos-proxmox/internal/check"
	"github.com/talos-proxmox/talos-proxmox/internal/image"
	"github.com/talos-proxmox/talos-proxmox/internal/machineconfig"
	"github.com/talos-proxmox/talos-proxmox/spec"
)

// Talos records what Talos refuses of each node's machine configuration, rendered with throw-away secrets. The configuration is
// complete, and no rule is broken.
func Talos(c spec.Config, readFile func(path string) ([]byte, error), l *check.List) {
	in := machineconfig.Input{Config: c, Installer: map[string]string{}, ReadFile: readFile}
	for _, n := range c.Nodes {
		img := c.Image(n)
		schematic, err := image.Resolve(img, *c.Talos.Version, readFile)
		if err != nil {
			l.Addf(check.Key("nodes", n.Name)+".image", "%s", err)

			continue
		}
		in.Installer[n.Name] = image.Installer(img, schematic.ID, *c.Talos.Version)
	}
	machineconfig.Check(in, l)
}

// versionPaths are the settings on which the form of every machine configuration hangs.
var versionPaths = []string{"talos.version", "talos.contract", "kubernetes.version"}

// Beside records what Talos refuses of patches beside the problems that were found already: as if what is wrong had been left
// out. What it says of other settings is left to the next look, since it may follow from those problems.
func Beside(found []spec.Problem, c spec.Config, readFile func(path string) ([]byte, error), l *check.List) {
	for _, p := range found {
		for _, at := range versionPaths {
			if related(p.Path, at) {
				return
			}
		}
	}
	c = spec.Clone(c)
	for _, p := range found {
		leaveOut(&c, p.Path)
	}
	if c.Cluster.Name == nil {
		c.Cluster.Name = spec.Ptr("cluster")
	}
	var said check.List
	if !rendered(c.WithDefaults(), readFile, &said) {
		return
	}
	for _, p := range said.Problems() {
		if follows(p.Path, found) {
			continue
		}
		l.Add(p)
	}
}

// rendered calls [machineconfig.CheckPatches] and reports whether it came to its end: what was left out may be what it cannot do without.
func rendered(c spec.Config, readFile func(path string) ([]byte, error), l *check.List) (ok bool) {
	defer func() { ok = recover() == nil }()
	machineconfig.CheckPatches(machineconfig.Input{Config: c, Installer: map[string]string{}, ReadFile: readFile}, l)

	return true
}

// follows reports whether what Talos says at a path may follow from one of the problems.
func follows(path string, found []spec.Problem) bool {
	for _, p := range found {
		if related(p.Path, path) {
			return true
		}
	}

	return false
}

// related reports whether one of the paths is at or below the other.
func related(a, b string) bool {
	if len(a) > len(b) {
		a, b = b, a
	}

	return a == b || strings.HasPrefix(b, a) && strings.ContainsRune(".[", rune(b[len(a)]))
}

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
