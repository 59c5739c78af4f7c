// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package bridge

import (
	"slices"

	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/plugin"
)

// Change describes one changed property.
type Change struct {
	Path     Path
	Old, New any // plain; nil when absent. May be secret.
	Unknown  bool
	// Output marks a change that comes from the state, not from inputs.
	Output bool
}

// Compare compares inputs; secrets are opened, the bridge's bookkeeping is passed over.
func Compare(was, now resource.PropertyValue, path Path) []Change {
	was, now = open(was), open(now)

	switch {
	case now.IsComputed() || (now.IsOutput() && !now.OutputValue().Known):
		return []Change{{Path: path, Old: plain(was), Unknown: true}}
	case was.IsObject() && now.IsObject():
		return objectChanges(was.ObjectValue(), now.ObjectValue(), path)
	case was.IsArray() && now.IsArray():
		var out []Change
		a, b := was.ArrayValue(), now.ArrayValue()
		for i := range max(len(a), len(b)) {
			out = append(out, Compare(at(a, i), at(b, i), path.With(i))...)
		}
		return out
	}

	old, fresh := plain(was), plain(now)
	if was.DeepEquals(now) || (old == nil && fresh == nil) {
		return nil
	}

	return []Change{{Path: path, Old: old, New: fresh}}
}

func objectChanges(was, now resource.PropertyMap, path Path) []Change {
	var keys []resource.PropertyKey
	keys = append(keys, was.StableKeys()...)
	for _, k := range now.StableKeys() {
		if _, have := was[k]; !have {
			keys = append(keys, k)
		}
	}

	slices.Sort(keys)

	var out []Change
	for _, k := range keys {
		if !internal(k) {
			out = append(out, Compare(was[k], now[k], path.With(string(k)))...)
		}
	}

	return out
}

func open(v resource.PropertyValue) resource.PropertyValue {
	for v.IsSecret() {
		v = v.SecretValue().Element
	}
	if v.IsOutput() && v.OutputValue().Known {
		return open(v.OutputValue().Element)
	}

	return v
}

func at(l []resource.PropertyValue, i int) resource.PropertyValue {
	if i < len(l) {
		return l[i]
	}

	return resource.NewNullProperty()
}

func (c Change) kind(replace bool) plugin.DiffKind {
	kind := plugin.DiffUpdate

	switch {
	case c.Old == nil:
		kind = plugin.DiffAdd
	case c.New == nil && !c.Unknown:
		kind = plugin.DiffDelete
	}

	if replace {
		return kind.AsReplace()
	}

	return kind
}

// Result makes the engine's form of a diff; replaces tells which changes need a new resource.
func Result(found []Change, replaces func(Change) bool) plugin.DiffResult {
	if len(found) == 0 {
		return plugin.DiffResult{Changes: plugin.DiffNone}
	}

	r := plugin.DiffResult{Changes: plugin.DiffSome, DetailedDiff: map[string]plugin.PropertyDiff{}}
	for _, c := range found {
		r.DetailedDiff[c.Path.String()] = plugin.PropertyDiff{Kind: c.kind(replaces(c)), InputDiff: !c.Output}
	}

	return r
}

// stale names the outputs that are made anew.
func (o *Op) stale() []string {
	var names []string
	for _, c := range o.Changes {
		if c.Output {
			names = append(names, c.Path.String())
		}
	}

	return names
}
