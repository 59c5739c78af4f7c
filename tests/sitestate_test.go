// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package tests_test

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// shape holds what a site and a stack's state hold, as far as it does not depend on when it was made: two
// ways that lead to the same end lead to the same shape.
type shape struct {
	VMs       []string // id, name, host, power, changes that wait for a reboot
	Nodes     []string // hostname, address, stage, version, role, cluster, problem
	Clusters  []string // name, version of Kubernetes, health, members of etcd
	Files     []string // images on the hosts
	Resources []string // of the stack
	Pending   int      // operations whose end nobody has noted
}

// shape returns how the site and a stack stand now.
func (s *site) shape(stack string) shape {
	s.t.Helper()

	r := s.lab("status", "--json")
	require.Zero(s.t, r.code, r.all())
	var st struct {
		VMs      []map[string]any `json:"vms"`
		Nodes    []map[string]any `json:"nodes"`
		Clusters []map[string]any `json:"clusters"`
		Hosts    []struct {
			Name  string   `json:"name"`
			Files []string `json:"files"`
		} `json:"hosts"`
	}
	require.NoError(s.t, json.Unmarshal([]byte(r.stdout), &st), r.stdout)

	found := shape{
		VMs:      rows(s, st.VMs, "vmid", "name", "host", "status", "pending"),
		Nodes:    rows(s, st.Nodes, "hostname", "address", "stage", "talos", "role", "cluster", "problem"),
		Clusters: rows(s, st.Clusters, "name", "kubernetes", "healthy", "members"),
	}
	for _, h := range st.Hosts {
		for _, f := range h.Files {
			found.Files = append(found.Files, h.Name+" "+f)
		}
	}
	slices.Sort(found.Files)

	exported := s.must("pulumi", "stack", "export", "--stack", stack)
	var state struct {
		Deployment struct {
			Resources []struct {
				URN    string `json:"urn"`
				Delete bool   `json:"delete"`
			} `json:"resources"`
			Pending []any `json:"pending_operations"`
		} `json:"deployment"`
	}
	require.NoError(s.t, json.Unmarshal([]byte(exported.stdout), &state))
	for _, r := range state.Deployment.Resources {
		_, name, _ := strings.Cut(r.URN, "::")
		if r.Delete {
			name += " (to be deleted)"
		}
		found.Resources = append(found.Resources, name)
	}
	slices.Sort(found.Resources)
	found.Pending = len(state.Deployment.Pending)

	return found
}

// rows returns the named fields of each object, one line an object.
func rows(s *site, objects []map[string]any, fields ...string) []string {
	lines := make([]string, 0, len(objects))
	for _, o := range objects {
		picked := map[string]any{}
		for _, f := range fields {
			picked[f] = o[f]
			if list, ok := o[f].([]any); ok {
				slices.SortFunc(list, func(a, b any) int { return strings.Compare(toText(a), toText(b)) })
			}
		}
		text, err := json.Marshal(picked)
		require.NoError(s.t, err)
		lines = append(lines, string(text))
	}
	slices.Sort(lines)

	return lines
}

func toText(v any) string {
	text, ok := v.(string)
	if !ok {
		return ""
	}

	return text
}

// hasVMs asserts exactly these VMs, all running.
func (s *site) hasVMs(names ...string) {
	s.t.Helper()

	running := map[string]bool{}
	for _, vm := range s.status().VMs {
		running[vm.Name] = vm.Status == "running"
	}
	assert.ElementsMatch(s.t, names, slices.Collect(maps.Keys(running)), "VMs")
	for name, on := range running {
		assert.Truef(s.t, on, "%s runs", name)
	}
}
