// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package stack_test

import (
	"fmt"
	"maps"
	"net/netip"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"github.com/talos-proxmox/talos-proxmox/internal/check"
	"github.com/talos-proxmox/talos-proxmox/stack"
)

// related are settings beside those of the rich base, so that there are at least two of every kind of value that must be one's own.
var related = []string{
	`cni.cilium.bgp={localAsn: 65001, peers: {r: {address: 10.0.0.250, asn: 65000}, s: {address: 10.0.0.251, asn: 65000}}}`,
	`talos.kubePrism={port: 7446}`, `kubernetes.kubelet.clusterDns=[10.96.0.10]`, `talos.registries=null`,
	`cluster.certSANs=[a.example.com, b.example.com]`, `cluster.searchDomains=[c.example.com, d.example.com]`,
	`cluster.nameservers=[10.0.0.3, 10.0.0.6]`, `cluster.timeServers=[10.0.0.4, 10.0.0.7]`,
	`proxmox.ssh.nodes={pve1: 10.0.0.2, pve2: 10.0.0.8}`,
	`output={kubeconfigFile: out/k, talosconfigFile: out/t, machineConfigDirectory: configs}`,
	`nodes.w-1.networks={lan: {mac: "bc:24:11:00:00:01"}, stor: {mac: "bc:24:11:00:00:02"}}`,
	`nodes.w-1.disks={data: {size: 50, unitNumber: 1, serial: d1, mountpoint: /var/mnt/data}, more: {size: 51, unitNumber: 2, serial: d2, mountpoint: /var/mnt/more}}`,
	`nodes.w-1.hostname=w-one`, `nodes.cp-1.hostname=cp-one`, `nodes.w-1.tags=[one, two]`,
	`nodes.w-1.usb=[{mapping: u1}, {mapping: u2}]`, `manifests.extra=["https://m.example.com/a.yaml", "https://m.example.com/b.yaml"]`,
}

// setting is a setting with a plain value, and what kind of value it is.
type setting struct {
	path, kind string
	value      any
}

var (
	macForm  = regexp.MustCompile(`^([0-9a-f]{2}:){5}[0-9a-f]{2}$`)
	pathForm = regexp.MustCompile(`^/|^[a-z]+/[a-z]`)
)

// kindOf returns what kind of value a setting has, of which two can be the same by mistake; "" where that is nobody's mistake.
func kindOf(path string, value any) string {
	last := path[strings.LastIndexByte(path, '.')+1:]
	text, isText := value.(string)
	switch {
	case slices.Contains([]string{"vmId", "unitNumber", "index", "serial", "hostname", "mapping"}, last):
		return last
	case strings.HasPrefix(path, "cluster.podSubnets"), strings.HasPrefix(path, "cluster.serviceSubnets"):
		return "network"
	case !isText:
		return ""
	}
	if _, err := netip.ParseAddr(text); err == nil {
		return "address"
	}
	if _, err := netip.ParsePrefix(text); err == nil {
		return "network"
	}
	list := strings.TrimRight(path, "[]0123456789")
	switch u, err := url.Parse(text); {
	case strings.HasSuffix(path, "]") && list != path:
		return "entry of " + list
	case err == nil && u.Scheme == "https":
		return ""
	case macForm.MatchString(text):
		return "mac"
	case pathForm.MatchString(text):
		return "path below " + check.Parent(check.Parent(path))
	default:
		return ""
	}
}

// settingsOf returns the plain settings of a tree by their paths, in order.
func settingsOf(path string, tree any) []setting {
	var all []setting
	switch tree := tree.(type) {
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(tree)) {
			all = append(all, settingsOf(check.Key(path, name), tree[name])...)
		}
	case []any:
		for i, item := range tree {
			all = append(all, settingsOf(check.Index(path, i), item)...)
		}
	default:
		if kind := kindOf(path, tree); kind != "" {
			all = append(all, setting{path, kind, tree})
		}
	}

	return all
}

// TestEveryPairIsApart takes every two settings that have values of one kind, and gives the one the value of the other, in both
// directions. What is refused in the one direction is refused in the other, each time with one problem, at a line.
func TestEveryPairIsApart(t *testing.T) {
	t.Parallel()
	m := mistake{base: "rich", edits: related}
	require.Empty(t, m.problems(t))
	all := settingsOf("", m.config(t))
	pairs, refused := 0, 0
	for i, a := range all {
		for _, b := range all[i+1:] {
			if a.kind != b.kind || fmt.Sprint(a.value) == fmt.Sprint(b.value) {
				continue
			}
			pairs++
			there, back := m.with(t, a.path, b.value), m.with(t, b.path, a.value)
			if len(there) > 0 {
				refused++
			}
			name := fmt.Sprintf("%s=%v and %s=%v:\n%q\n%q", a.path, b.value, b.path, a.value, there, back)
			assert.Equal(t, len(there), len(back), "told in one direction: %s", name)
			assert.LessOrEqual(t, len(there), 1, "one mistake, several problems: %s", name)
		}
	}
	t.Logf("%d pairs of settings, of which %d must not be the same, told in both directions", pairs, refused)
	assert.Greater(t, refused, 150)
}

// config returns the configuration with the edits, without the project's name before keys.
func (m mistake) config(t testing.TB) map[string]any {
	t.Helper()
	file := m.file(t, t.TempDir())
	config := map[string]any{}
	for key, value := range file["config"].(map[string]any) {
		config[strings.TrimPrefix(key, stack.Project+":")] = value
	}

	return config
}

// with returns the problems when one more setting is changed, in place.
func (m mistake) with(t testing.TB, path string, value any) []string {
	t.Helper()
	tree := m.config(t)
	require.True(t, replaceAt("", tree, path, value), path)
	config := map[string]any{}
	for key, below := range tree {
		config[stack.Project+":"+key] = below
	}
	text, err := yaml.Marshal(map[string]any{"config": config})
	require.NoError(t, err)
	var told []string
	for _, p := range loaded(t, t.TempDir(), string(text), nil) {
		assert.Positive(t, p.Line, "%s: %s", path, p)
		told = append(told, p.String())
	}

	return told
}

// replaceAt replaces the value at a path of a tree, and reports whether it is there.
func replaceAt(at string, tree any, path string, value any) bool {
	replace := func(here string, below any, set func()) bool {
		if here == path {
			set()

			return true
		}

		return replaceAt(here, below, path, value)
	}
	switch tree := tree.(type) {
	case map[string]any:
		for name, below := range tree {
			if replace(check.Key(at, name), below, func() { tree[name] = value }) {
				return true
			}
		}
	case []any:
		for i, below := range tree {
			if replace(check.Index(at, i), below, func() { tree[i] = value }) {
				return true
			}
		}
	}

	return false
}
