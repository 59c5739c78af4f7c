// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package tests_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

// TestNewFormsFollowInARunOfTheirOwn upgrades Talos to another minor version: the configurations keep the
// forms that the old version reads, and take the new ones only in a run after that. Edits that would lose
// the cluster are refused on the way.
func TestNewFormsFollowInARunOfTheirOwn(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	file := func(edits ...string) string {
		path := s.alone()
		s.replace(path, "    version: v1.35.0\n", "    version: v1.34.1\n")
		for i := 0; i+1 < len(edits); i += 2 {
			s.replace(path, edits[i], edits[i+1])
		}

		return path
	}
	refused := func(want string, edits ...string) {
		r := s.try("pulumi", "preview", "--stack", "dev", "--config-file", file(edits...), "--non-interactive")
		assert.NotZero(t, r.code)
		assert.Contains(t, r.all(), want)
	}
	dev := s.up("dev", file("version: v1.12.4", "version: v1.11.6"))

	refused("talos.contract: was v1.11, is now v1.12, and the nodes run Talos v1.11.6: edit talos.version first",
		"version: v1.12.4", "version: v1.12.4\n    contract: v1.12")
	refused("cluster.name: was talos-dev, is now talos-two: every machine would be recreated",
		"version: v1.12.4", "version: v1.11.6", "name: talos-dev", "name: talos-two")
	refused("kubernetes.etcdEncryption: was secretbox, is now aescbc: what etcd holds could not be read any more",
		"version: v1.12.4", "version: v1.11.6", "    version: v1.34.1\n", "    version: v1.34.1\n    etcdEncryption: aescbc\n")
	refused("cluster.podSubnets: was 10.244.0.0/16, is now 10.245.0.0/16: nodes and pods keep the addresses that they have",
		"version: v1.12.4", "version: v1.11.6", "    name: talos-dev\n", "    name: talos-dev\n    podSubnets: [10.245.0.0/16]\n")

	dev.edit(file())
	assert.Equal(t, "v1.12.4", s.status().Nodes[0].Talos)
	dev.isSettled()

	raised := time.Now()
	dev.edit(file("version: v1.12.4", "version: v1.12.4\n    contract: v1.12"))
	assert.NotEmpty(t, s.trace(raised).of("talos.apply"), "the configuration takes new forms")
	dev.hasNodes("ctrl-00")
	dev.isSettled()
}
