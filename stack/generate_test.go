// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package stack_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/netip"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"github.com/talos-proxmox/talos-proxmox/internal/check"
	"github.com/talos-proxmox/talos-proxmox/spec"
	"github.com/talos-proxmox/talos-proxmox/stack"
)

// rightStacks returns the right stacks from which broken ones are generated: the bases, what ships, and the right ones that were
// written as edits of a base.
func rightStacks(t testing.TB) []mistake {
	t.Helper()
	all := []mistake{{base: "rich"}, {base: "base"}, {base: "six"}, {base: "dual"}, {base: "rich", edits: related}}
	for _, name := range slices.Sorted(maps.Keys(shipped)) {
		all = append(all, mistake{base: name})
	}
	for _, m := range mistakes(t) {
		files := slices.ContainsFunc(m.edits, func(e string) bool { return strings.ContainsRune(e[:strings.IndexByte(e, '=')], ' ') })
		if m.at == "ok" && !files { // files, the environment and what is beside the configuration are no settings
			all = append(all, mistake{base: m.base, edits: m.edits})
		}
	}

	return all
}

// tree returns the configuration of a right stack without files, and the project's name before keys.
func (m mistake) tree(t testing.TB) map[string]any { return m.config(t) }

// editOf writes an edit as testdata/mistakes.txt has them.
func editOf(path string, value any) string {
	text, err := json.Marshal(value)
	if err != nil {
		return path + "=" + fmt.Sprint(value)
	}

	return path + "=" + string(text)
}

// editsOf returns the edits of one setting each that can be made of the values below a path: each is taken away, set to the edges
// of its kind and to the values that other right stacks have there or elsewhere.
func editsOf(path string, value any, pool values, put func(path string, value any)) {
	put(path, nil)
	switch value := value.(type) {
	case map[string]any:
		if text, secure := value["secure"]; secure && len(value) == 1 {
			for _, v := range []any{text, block{"secure": ""}, block{"secure": "x"}, block{"secure": "a b"}, block{"secure": "ssh-ed25519 AAAA"}} {
				put(path, v)
			}

			return
		}
		for _, name := range slices.Sorted(maps.Keys(value)) {
			editsOf(check.Key(path, name), value[name], pool, put)
		}
	case []any:
		put(path, []any{})
		for i, item := range value {
			whole := slices.Clone(value)
			replaced := func(at string, v any) {
				list := slices.Clone(whole)
				if at == check.Index(path, i) {
					if list[i] = v; v == nil {
						list = slices.Delete(list, i, i+1)
					}
				} else if block, ok := item.(map[string]any); ok {
					block = maps.Clone(block)
					setIn(block, check.Elements(strings.TrimPrefix(at, check.Index(path, i))), v)
					list[i] = block
				}
				put(path, list)
			}
			editsOf(check.Index(path, i), item, pool, replaced)
			put(path, append(slices.Clone(whole), item))
		}
		for _, other := range pool.of(path) {
			if list, ok := other.([]any); ok {
				put(path, list)
				put(path, append(slices.Clone(value), list...))
			}
		}
	default:
		for _, v := range slices.Concat(edges(value), pool.of(path)) {
			put(path, v)
		}
	}
}

func setIn(tree map[string]any, path []string, value any) {
	path = slices.DeleteFunc(slices.Clone(path), func(s string) bool { return s == "" })
	if len(path) == 0 {
		return
	}
	if below, ok := tree[path[0]].(map[string]any); ok && len(path) > 1 {
		below = maps.Clone(below)
		tree[path[0]] = below
		setIn(below, path[1:], value)

		return
	}
	if tree[path[0]] = value; value == nil {
		delete(tree, path[0])
	}
}

// values are the values that right stacks have, by the last name of the setting's path and by their kind.
type values struct{ byName, byKind map[string][]any }

func valuesOf(t testing.TB, stacks []mistake) values {
	t.Helper()
	v := values{map[string][]any{}, map[string][]any{}}
	seen := map[string]bool{}
	var walk func(path string, value any)
	walk = func(path string, value any) {
		last := lastName(path)
		if key := last + fmt.Sprint(value); !seen[key] {
			seen[key] = true
			v.byName[last] = append(v.byName[last], value)
		}
		switch value := value.(type) {
		case map[string]any:
			for _, name := range slices.Sorted(maps.Keys(value)) {
				walk(check.Key(path, name), value[name])
			}
		case []any:
			for i, item := range value {
				walk(check.Index(path, i), item)
			}
		default:
			kind := formOfValue(value)
			if key := kind + " " + fmt.Sprint(value); kind != "" && !seen[key] {
				seen[key] = true
				v.byKind[kind] = append(v.byKind[kind], value)
			}
		}
	}
	for _, m := range stacks {
		tree := m.tree(t)
		for _, name := range slices.Sorted(maps.Keys(tree)) {
			walk(name, tree[name])
		}
	}

	return v
}

// of returns the values that a setting with this name has elsewhere.
func (v values) of(path string) []any { return v.byName[lastName(path)] }

func lastName(path string) string {
	path = strings.TrimRight(path, "[]0123456789")
	elements := check.Elements(path)
	if len(elements) == 0 {
		return path
	}

	return elements[len(elements)-1]
}

var (
	versionForm  = regexp.MustCompile(`^v?(\d+)\.(\d+)\.(\d+)`)
	sizeForm     = regexp.MustCompile(`^\d+(\.\d+)?[KMGT]i?B?$`)
	durationForm = regexp.MustCompile(`^(\d+(h|m|s))+$`)
)

// formOfValue returns what kind of value a text is.
func formOfValue(value any) string {
	text, ok := value.(string)
	if !ok {
		return ""
	}
	if a, err := netip.ParseAddr(text); err == nil {
		return "address" + strconv.FormatBool(a.Is4())
	}
	if p, err := netip.ParsePrefix(text); err == nil {
		return "prefix" + strconv.FormatBool(p.Addr().Is4())
	}
	switch {
	case macForm.MatchString(text):
		return "mac"
	case strings.Contains(text, "://"):
		return "url"
	case versionForm.MatchString(text):
		return "version"
	case strings.HasPrefix(text, "/"):
		return "path"
	case sizeForm.MatchString(text):
		return "size"
	case durationForm.MatchString(text):
		return "duration"
	default:
		return "text"
	}
}

// edges returns values at the edges of a value's kind, and beyond them.
func edges(value any) []any {
	switch value := value.(type) {
	case bool:
		return []any{!value}
	case int:
		return []any{0, -1, 1, 2, 7, value + 1, value - 1, value * 1024, value / 1024, 65535, 65536, 99999999999}
	case float64:
		return edges(int(value))
	case string:
		return textEdges(value)
	default:
		return nil
	}
}

func textEdges(text string) []any {
	all := []any{"", "x", "a b", "A_b", "x-", "-x", "x.y", "x/y", "x=y", "a,b", "*", "../x", strings.Repeat("x", 64), strings.Repeat("x", 300), "ü", "1"}
	switch form := formOfValue(text); {
	case strings.HasPrefix(form, "address"), strings.HasPrefix(form, "prefix"):
		all = append(all, addressEdges(text)...)
	case form == "mac":
		all = append(all, strings.ToUpper(text), strings.ReplaceAll(text, ":", "-"), "01:00:5e:00:00:01", "00:00:00:00:00:00", "ff:ff:ff:ff:ff:ff")
	case form == "url":
		scheme, rest, _ := strings.Cut(text, "://")
		all = append(all, "http://"+rest, rest, "ssh://git@"+rest, "file:///"+rest, "oci://"+rest, "HTTPS://"+rest, text+"/", text+"?a=b",
			text+"#a", text+"/v2", text+":0", text+":99999", text+"/../x", scheme+"://", scheme+"://u:"+secretInMistakes+"@"+rest,
			scheme+"://127.0.0.1/x", "git@"+strings.Replace(rest, "/", ":", 1))
	case form == "version":
		all = append(all, versionEdges(text)...)
	case form == "path":
		all = append(all, strings.TrimPrefix(text, "/"), text+"/", text+"/..", "/"+text, "/", "/var", "/etc/x", "/var/lib/etcd", "/system", text+":ro", text+"/x")
	case form == "size":
		all = append(all, "0G", "1M", "999T", "-1G", "1.5G", "10", "10GiB", "10gb")
	case form == "duration":
		all = append(all, "0s", "-1s", "1ms", "10000h", "5", "5d", "1h30m")
	}

	return all
}

func addressEdges(text string) []any {
	all := []any{"0.0.0.0", "127.0.0.1", "169.254.1.1", "224.0.0.1", "255.255.255.255", "8.8.8.8", "fd00::1", "::1", "::", "fe80::1", "ff02::1", "2001:db8::1",
		"0.0.0.0/0", "127.0.0.0/8", "169.254.0.0/16", "224.0.0.0/4", "::/0", "fe80::/64", "ff00::/8", "fd00::/64", "fd00::/128", "10.0.0.0/8", "x"}
	bare, bits, hasBits := strings.Cut(text, "/")
	a, err := netip.ParseAddr(bare)
	if err != nil {
		return all
	}
	all = append(all, bare+"/33", bare+"/129", bare+":6443", "https://"+bare, a.Next().String(), a.Prev().String(), "::ffff:"+bare, "0"+bare)
	for _, n := range []int{8, 12, 16, 20, 23, 24, 25, 28, 30, 31, 32, 48, 56, 64, 96, 108, 112, 120, 126, 127, 128} {
		p, err := a.Prefix(n)
		if err != nil {
			continue
		}
		all = append(all, bare+"/"+strconv.Itoa(n), p.String())
		if n == 24 || n == 64 {
			all = append(all, p.Addr().String(), p.Addr().Next().String())
		}
	}
	if a.Is4() {
		octets := a.As4()
		octets[3] = 255
		last := netip.AddrFrom4(octets)
		all = append(all, last.String(), last.Prev().String(), last.String()+"/"+bits)
	}
	if hasBits {
		all = append(all, bare, a.Next().String()+"/"+bits)
	}

	return all
}

func versionEdges(text string) []any {
	m := versionForm.FindStringSubmatch(text)
	major, _ := strconv.Atoi(m[1])
	minor, _ := strconv.Atoi(m[2])
	form := "%d.%d.%s"
	if text[0] == 'v' {
		form = "v" + form
	}
	all := []any{strings.TrimPrefix(text, "v"), "v" + text, text + "-alpha", text + "-alpha.1", text + "-rc.1", text + "+x", "latest", "v1", m[1] + "." + m[2], "v1.x"}
	for _, step := range []int{-9, -5, -3, -2, -1, 1, 2, 3, 5, 50} {
		all = append(all, fmt.Sprintf(form, major, minor+step, m[3]), fmt.Sprintf(form, major, minor+step, "0"))
	}

	return append(all, fmt.Sprintf(form, major+1, minor, m[3]), fmt.Sprintf(form, major, minor, "999"))
}

// singleEdits returns every right stack with one more edit, in a fixed order: what stands there is changed, whatever the types know
// is added, and blocks of other stacks are put in its place.
func singleEdits(t testing.TB, stacks []mistake) []mistake {
	t.Helper()
	pool := valuesOf(t, stacks)
	seen := map[string]bool{}
	var all []mistake
	add := func(m mistake, path string, value any) {
		edit := editOf(path, value)
		if key := m.base + strings.Join(m.edits, ";") + " " + edit; !seen[key] {
			seen[key] = true
			all = append(all, mistake{base: m.base, edits: append(slices.Clone(m.edits), edit)})
		}
	}
	for i, m := range stacks {
		tree := m.tree(t)
		put := func(path string, value any) { add(m, path, value) }
		for _, at := range m.touched(tree, i < 9) {
			if value, ok := valueAt(tree, at); ok {
				editsOf(at, value, pool, put)
			}
		}
	}
	for _, k := range spec.KeysOf(reflect.TypeFor[stack.File](), "") {
		path, ok := placed(k.Path)
		if !ok {
			continue
		}
		for _, v := range slices.Concat(typed(k), pool.of(path)) {
			m := mistake{base: "rich"}
			for block, needed := range around {
				if strings.HasPrefix(path, block+".") {
					m.edits = []string{needed}
				}
			}
			add(m, path, v)
		}
	}
	for _, m := range stacks {
		for _, e := range m.edits {
			for _, base := range []string{"rich", "base", "six", "dual", "prod", "homelab", "cilium-argocd"} {
				path, text, _ := strings.Cut(e, "=")
				if base != m.base && strings.HasPrefix(path, "nodes.") {
					continue // nodes have other names there
				}
				var value any
				require.NoError(t, yaml.Unmarshal([]byte(text), &value))
				add(mistake{base: base}, path, value)
			}
		}
	}

	return all
}

// typed returns values that the type of a key allows.
func typed(k spec.Key) []any {
	var all []any
	for _, text := range smallest(k) {
		var v any
		if yaml.Unmarshal([]byte(text), &v) == nil {
			all = append(all, v)
		}
	}
	switch {
	case k.Type == reflect.TypeFor[spec.Secret]():
		all = append(all, block{"secure": "x"}, block{"secure": ""}, block{"secure": "a b"}, "x")
	case k.Type.Kind() == reflect.String && k.Enum == nil:
		all = append(all, edges("x")...)
	case k.Type.Kind() == reflect.Int:
		all = append(all, edges(10)...)
	}

	return all
}

// touched returns the paths of a right stack at which edits are made: those of its own edits, and everything for a base.
func (m mistake) touched(tree map[string]any, whole bool) []string {
	if whole {
		return slices.Sorted(maps.Keys(tree))
	}
	var paths []string
	for _, e := range m.edits {
		path, _, _ := strings.Cut(e, "=")
		paths = append(paths, path)
	}

	return paths
}

func valueAt(tree any, path string) (any, bool) {
	for _, name := range check.Elements(path) {
		switch below := tree.(type) {
		case map[string]any:
			v, ok := below[name]
			if !ok {
				return nil, false
			}
			tree = v
		case []any:
			i, err := strconv.Atoi(name)
			if err != nil || i >= len(below) {
				return nil, false
			}
			tree = below[i]
		default:
			return nil, false
		}
	}

	return tree, true
}
