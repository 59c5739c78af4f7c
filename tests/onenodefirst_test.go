// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package tests_test

import (
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

// TestABadConfigurationReachesOneNode gives the API servers a flag that they do not start with, and then all nodes a firewall
// that lets nobody in. The first control plane tries each and takes it back by itself; no other node gets it.
func TestABadConfigurationReachesOneNode(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	c := s.up("small", s.small())
	short := func(edits ...string) string {
		return s.small(append(edits, "readyTimeout: 4m", "readyTimeout: 20s")...)
	}

	for edit, says := range map[[2]string]string{
		{"version: v1.35.0", "version: v1.35.0\n    apiServer: {extraArgs: {egress-selector-config-file: /etc/none.yaml}}"}:                                "",
		{"version: v1.12.4", "version: v1.12.4\n    patches: {all: [{inline: {apiVersion: v1alpha1, kind: NetworkDefaultActionConfig, ingress: block}}]}"}: "the Talos API answers on every node",
	} {
		started := time.Now()
		c.refuses(short(edit[0], edit[1]), "cp-1 tries its configuration", "it does not stay healthy with its new configuration", says,
			"it takes the configuration back within 40s by itself, and no other node was changed")
		assert.Equal(t, []string{"node/10.30.0.1 TRY"}, s.tried(started))
		require.Eventually(t, func() bool { return s.status().Clusters[0].Healthy }, 3*time.Minute, 3*time.Second, "the node took it back")
		c.edit(s.small())
		c.hasNodes("cp-1", "cp-2", "cp-3")
	}
	c.isSettled()
}
