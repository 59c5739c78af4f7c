// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package keys_test

import (
	"cmp"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/talos-proxmox/talos-proxmox/spec"
	"github.com/talos-proxmox/talos-proxmox/stack"
)

// keyCase says how the effect of a key is shown, where its type does not say enough.
type keyCase struct {
	// value to set; made from the key's type, its allowed values and its default when empty.
	value string
	// without is the value it is held against; nothing is set when empty.
	without string
	// given is written beside it, in both stacks: at the root, or at what stands for the node.
	given, node string
	// refused is what the error says of the one stack of the two that is refused; for keys that
	// change only what is refused.
	refused string
	// shown shows it in another way.
	shown func(*testing.T)
}

// settled holds a stack around a place where the keys of a node can be written.
type settled struct {
	at   string
	base string
	// node is one for which the keys are, where they are for several.
	node string
}

// smallest is a stack with one node.
const smallest = `
proxmox: {endpoint: "https://pve.example.com:8006", hosts: {pve: {}}}
cluster: {name: test, vmIdBase: 800}
nodes: {c1: {role: controlplane, networks: {lan: {address: 10.0.0.11/24}}}}
`

// nodePlaces are the places where the keys of a node can be written, by the start of the key's path.
var nodePlaces = map[string]settled{
	"nodes.*.":               {at: "nodes.w1", base: workerGiven},
	"defaults.all.":          {at: "defaults.all", node: "c1"},
	"defaults.controlPlane.": {at: "defaults.controlPlane", node: "c1"},
	"defaults.worker.":       {at: "defaults.worker", base: workerGiven, node: "w1"},
	"sizes.*.": {
		at: "sizes.small", node: "w1",
		base: "{sizes: {small: {}}, nodes: {w1: {role: worker, size: small, networks: {lan: {address: 10.0.0.21/24}}}}}",
	},
	"pools.*.": {
		at: "pools.workers", base: "pools: {workers: {role: worker, count: 1, networks: {lan: {address: 10.0.0.21/24}}}}",
	},
	"pools.*.members[].": {
		at:   "pools.workers.members.[]",
		base: "pools: {workers: {role: worker, members: [{name: m1, networks: {lan: {address: 10.0.0.21/24}}}]}}",
	},
}

// placeOf returns where the keys of a node stand for a key; the rest of its path is the key of the node.
func placeOf(path string) (start string, ok bool) {
	for prefix := range nodePlaces {
		if strings.HasPrefix(path, prefix) && len(prefix) > len(start) {
			start = prefix
		}
	}

	return start, start != ""
}

// userNames stand for names of the user's choice, by the block that has them.
var userNames = map[string]string{
	"networks": "net2", "disks": "data", "identities": "0000:01:00.0", "hosts": "pve", "images": "other",
	"registries": "docker.io", "files": "/var/etc/one", "nodes": "w1", "sizes": "small", "pools": "workers",
}

// TestEveryKeyHasAnEffect sets each key of a stack file, as the types have them, and demands that
// something which the program asks of the engine, or writes, becomes another.
func TestEveryKeyHasAnEffect(t *testing.T) {
	t.Parallel()
	r := newRunner(t)
	used := map[string]bool{}
	keys := 0
	small := overlay(t, nil, parse(t, smallest))
	first, second := r.outcome(t, small), r.outcome(t, small)
	require.NoError(t, first.err)
	require.Empty(t, difference(first, second), "the same stack leads to the same")
	for _, k := range stack.Keys() {
		if !k.Leaf() {
			continue
		}
		keys++
		c, entry := caseOf(k.Path)
		used[entry] = true
		t.Run(k.Path, func(t *testing.T) {
			t.Parallel()
			if c.shown != nil {
				c.shown(t)

				return
			}
			assertEffect(t, r, k, c)
		})
	}
	for _, cases := range []map[string]keyCase{keyCases, nodeCases, dayCases} {
		for path := range cases {
			assert.True(t, used[path], "there is no key %s", path)
		}
	}
	t.Logf("%d keys", keys)
}

// caseOf returns the case of a key: its own, or that of the same key of a node or an image.
func caseOf(path string) (c keyCase, entry string) {
	for _, cases := range []map[string]keyCase{keyCases, dayCases} {
		if c, own := cases[path]; own {
			return c, path
		}
	}
	if rest, ok := strings.CutPrefix(path, "images.*."); ok {
		return keyCases["image."+rest], "image." + rest
	}
	start, ok := placeOf(path)
	if !ok {
		return keyCase{}, path
	}
	rest := strings.TrimPrefix(path, start)

	return nodeCase(start, rest), rest
}

func assertEffect(t *testing.T, r *runner, k spec.Key, c keyCase) {
	t.Helper()
	under, path := stackFor(t, k, c)
	before := under
	if c.without != "" {
		before = overlay(t, under, wrapped(path, parse(t, c.without)))
	}
	was := r.base(t, before)
	var tried []string
	for _, value := range valuesFor(k, c) {
		now := r.outcome(t, overlay(t, under, wrapped(path, parse(t, value))))
		if c.refused != "" {
			assert.NotEqual(t, was.err == nil, now.err == nil, "with: %v\nwithout: %v", now.err, was.err)
			assert.ErrorContains(t, errors.Join(was.err, now.err), c.refused)

			return
		}
		require.NoError(t, was.err, "without the key")
		if d := difference(was, now); now.err == nil && d != "" {
			t.Log(d)

			return
		}
		tried = append(tried, fmt.Sprintf("%s: %v", value, cmp.Or(now.err, errors.New("changes nothing"))))
	}
	assert.Fail(t, "the key has no effect", "%s", strings.Join(tried, "\n"))
}

// stackFor returns the stack around a key, and the key's place in it.
func stackFor(t *testing.T, k spec.Key, c keyCase) (under map[string]any, path []string) {
	t.Helper()
	under = overlay(t, nil, parse(t, smallest))
	rest := k.Path
	if start, ok := placeOf(k.Path); ok {
		place := nodePlaces[start]
		if place.base != "" {
			under = overlay(t, under, parse(t, place.base))
		}
		path, rest = strings.Split(place.at, "."), strings.TrimPrefix(k.Path, start)
		if c.node != "" {
			shared, own := apart(parse(t, c.node), place.node)
			under = overlay(t, overlay(t, under, own), wrapped(path, shared))
		}
	} else if strings.HasPrefix(k.Path, "images.*.") {
		under = overlay(t, under, parse(t, "{images: {other: {}}, nodes: {c1: {image: other}}}"))
		if c.node != "" {
			under = overlay(t, under, map[string]any{"images": map[string]any{"other": parse(t, c.node)}})
		}
	} else if strings.HasPrefix(k.Path, "image.") && c.node != "" {
		under = overlay(t, under, map[string]any{"image": parse(t, c.node)})
	}
	for _, given := range strings.Split(c.given, "\n---\n") {
		if given != "" {
			under = overlay(t, under, parse(t, given))
		}
	}

	return under, append(path, elementsOf(rest)...)
}

// apart takes addresses, which belong to one node, to the named node; none is named where the piece is
// for one node anyway.
func apart(piece any, node string) (shared, own any) {
	block, _ := piece.(map[string]any)
	networks, _ := block["networks"].(map[string]any)
	if node == "" || networks == nil {
		return piece, map[string]any{}
	}
	left, addresses := map[string]any{}, map[string]any{}
	for name, network := range networks {
		settings, address := map[string]any{}, map[string]any{}
		all, _ := network.(map[string]any)
		for key, value := range all {
			if strings.HasPrefix(key, "address") {
				address[key] = value
			} else {
				settings[key] = value
			}
		}
		left[name], addresses[name] = settings, address
	}

	return map[string]any{"networks": left}, wrapped([]string{"nodes", node, "networks"}, addresses)
}

func overlay(t *testing.T, under map[string]any, over any) map[string]any {
	t.Helper()
	out, ok := laid(under, over).(map[string]any)
	require.True(t, ok)

	return out
}

// elementsOf returns the elements of a key's path, with names in the place of the user's.
func elementsOf(path string) []string {
	var out []string
	for _, part := range strings.Split(path, ".") {
		if part == "*" {
			part = cmp.Or(userNames[out[len(out)-1]], "one")
		}
		name, isList := strings.CutSuffix(part, "[]")
		out = append(out, name)
		if isList {
			out = append(out, "[]")
		}
	}

	return out
}

// valuesFor returns values to set the key to: one of them must show an effect.
func valuesFor(k spec.Key, c keyCase) []string {
	if c.value != "" {
		return []string{c.value}
	}
	if k.Enum != nil {
		return slices.DeleteFunc(slices.Clone(k.Enum), func(v string) bool { return v == k.Default })
	}
	switch {
	case k.Type == reflect.TypeFor[spec.Duration]():
		return []string{"7m"}
	case k.Type == reflect.TypeFor[spec.Secret]():
		return []string{"a-secret"}
	}
	switch k.Type.Kind() {
	case reflect.Bool:
		return slices.DeleteFunc([]string{"true", "false"}, func(v string) bool { return v == k.Default })
	case reflect.Int:
		least, _ := strconv.Atoi(cmp.Or(k.Min, "0"))
		standard, _ := strconv.Atoi(cmp.Or(k.Default, "0"))

		return []string{strconv.Itoa(max(least, standard) + 1)}
	case reflect.Slice:
		return []string{"[word]"}
	case reflect.Map:
		return []string{"{word: value}"}
	default:
		return []string{"word"}
	}
}
