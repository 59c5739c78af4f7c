// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package tests_test

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// tried returns which nodes were given a configuration since then, and in which mode.
func (s *site) tried(since time.Time) []string {
	s.t.Helper()

	var tried []string
	for _, e := range s.trace(since).of("talos.apply") {
		if e.Attrs["dryRun"] == "false" {
			tried = append(tried, e.Object+" "+e.Attrs["mode"])
		}
	}

	return tried
}

// TestABadConfigurationReachesOneNode gives the API servers a flag that they do not start with, all nodes a firewall that lets
// nobody in, and all a default route over a router that is none. The first control plane tries each and takes it back by
// itself; no other node gets it.
func TestABadConfigurationReachesOneNode(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	// A gateway that the cloud-init drive has too is edited with the VM, which reboots.
	routed := []string{"gateway: 10.30.0.254", "routes: [{network: 0.0.0.0/0, gateway: 10.30.0.254}]"}
	c := s.up("small", s.small(routed...))
	short := func(edits ...string) string {
		return s.small(slices.Concat(routed, edits, []string{"readyTimeout: 4m", "readyTimeout: 20s"})...)
	}

	for edit, says := range map[[2]string]string{
		{"version: v1.35.0", "version: v1.35.0\n    apiServer: {extraArgs: {egress-selector-config-file: /etc/none.yaml}}"}:                                "",
		{"version: v1.12.4", "version: v1.12.4\n    patches: {all: [{inline: {apiVersion: v1alpha1, kind: NetworkDefaultActionConfig, ingress: block}}]}"}: "the Talos API answers on every node",
		{"gateway: 10.30.0.254}]", "gateway: 10.30.0.99}]"}: "the Talos API answers on every node",
	} {
		started := time.Now()
		c.refuses(short(edit[0], edit[1]), "cp-1 tries its configuration", "it does not stay healthy with its new configuration", says,
			"it takes the configuration back within 40s by itself, and no other node was changed")
		assert.Equal(t, []string{"node/10.30.0.1 TRY"}, s.tried(started))
		require.Eventually(t, func() bool { return s.status().Clusters[0].Healthy }, 3*time.Minute, 3*time.Second, "the node took it back")
		c.edit(s.small(routed...))
		c.hasNodes("cp-1", "cp-2", "cp-3")
	}
	c.isSettled()
}

// TestABadGatewayReachesOneNode gives all nodes a gateway that is none: their VMs reboot for it, one after the other, and the
// first does not come back, since nobody outside its subnet gets an answer. The others keep theirs, and the right gateway
// brings it back.
func TestABadGatewayReachesOneNode(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	c := s.up("small", s.small())
	started := time.Now()
	c.refuses(s.small("gateway: 10.30.0.254", "gateway: 10.30.0.99", "readyTimeout: 4m", "readyTimeout: 20s"),
		"was down: it is not back after 20s", "is left unchanged because node cp-")
	assert.Len(t, s.trace(started).of("pve.qmreboot"), 1)

	c.edit(s.small())
	assert.True(t, s.status().Clusters[0].Healthy)
	assert.Empty(t, s.trace(started).gateProblems(1))
	c.isSettled()
}
