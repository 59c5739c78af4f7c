// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package tests_test

import (
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestAnAirGappedClusterLives cuts the whole world off but for the hosts that `tpx images` names, once the charts
// are in the cache: a cluster comes up, is upgraded and goes. So the list has everything that is dialled.
func TestAnAirGappedClusterLives(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	edits := []string{
		"count: 3", "count: 1",
		"isoMirror: https://proxy.example.com/", "isoMirror: https://proxy.example.com/\n    factoryUrl: https://factory.example.com",
		"allowSchedulingOnControlPlanes: false", "allowSchedulingOnControlPlanes: true",
		"https://github.com/your-org/applications.git", "https://git.example.com/your-org/applications.git",
	}
	file := s.stackFile("Pulumi.prod.yaml", edits...)
	s.create("prod")
	tpx := s.build("cmd/tpx")
	s.must(tpx, "charts", "prod", "--config-file", file)
	hosts := s.dialled(tpx, file)
	for _, outside := range []string{"factory.talos.dev", "ghcr.io", "registry.k8s.io", "quay.io", "github.com", "helm.cilium.io"} {
		assert.NotContains(t, hosts, outside)
	}
	cut := s.lab("fault", "add", "offline", "but="+strings.Join(hosts, ","))
	require.Zero(t, cut.code, cut.all())

	prod := s.up("prod", file)
	prod.isSettled()
	prod.edit(s.stackFile("Pulumi.prod.yaml", append(slices.Clone(edits), "version: v1.12.4", "version: v1.12.5")...))
	s.runsTalos("v1.12.5")
	prod.destroy()
	assert.Empty(t, s.status().VMs)
}

// dialled returns the hosts from which `tpx images` says that a stack pulls, but for the charts that are in the cache.
func (s *site) dialled(tpx, file string) []string {
	s.t.Helper()

	var hosts []string
	listed := s.must(tpx, "images", "prod", "--config-file", file).stdout
	for line := range strings.Lines(listed) {
		fields := strings.Fields(line)
		if len(fields) < 3 || fields[0] == "BY" || fields[0] == "note:" || strings.Contains(line, "chart") {
			continue
		}
		from := fields[1]
		if u, err := url.Parse(from); err == nil && u.Host != "" {
			from = u.Host
		}
		host, _, _ := strings.Cut(from, "/")
		if !slices.Contains(hosts, host) {
			hosts = append(hosts, host)
		}
	}
	s.t.Log(listed, hosts)

	return hosts
}
