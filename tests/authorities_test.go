// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package tests_test

import (
	"encoding/base64"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/siderolabs/talos/pkg/machinery/config"
	"github.com/siderolabs/talos/pkg/machinery/config/generate/secrets"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"
)

// TestAuthoritiesAreRotated gives a cluster other authorities for its Talos API and its Kubernetes API, as
// docs/lifecycle.md says: in three runs, between which everything works. A short cut is refused before a node is touched.
func TestAuthoritiesAreRotated(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	nodes := []string{"cp-1", "worker-4"}
	configs := filepath.Join(t.TempDir(), "machines")
	c := s.up("small", s.of(nodes, "  talos-proxmox:lifecycle:\n", "  talos-proxmox:output: {machineConfigDirectory: "+configs+"}\n  talos-proxmox:lifecycle:\n"))

	read := func(path string) *secrets.Bundle {
		bundle := &secrets.Bundle{}
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		require.NoError(t, yaml.Unmarshal(text, bundle))

		return bundle
	}
	before := read(bundleOf(t, filepath.Join(configs, "cp-1.yaml")))
	fresh, err := secrets.NewBundle(secrets.NewClock(), config.TalosVersion1_12)
	require.NoError(t, err)
	next := *before
	certs := *before.Certs
	certs.OS, certs.K8s = fresh.Certs.OS, fresh.Certs.K8s
	next.Certs = &certs

	// file is the stack file with a bundle, and with the authorities of another one accepted.
	file := func(bundle, accepted *secrets.Bundle) string {
		var edits []string
		if accepted != nil {
			pem := func(text []byte) string {
				return "\n          - |\n            " + strings.ReplaceAll(strings.TrimSpace(string(text)), "\n", "\n            ")
			}
			edits = []string{"    name: small\n", "    name: small\n    acceptedCAs:\n      talos:" + pem(accepted.Certs.OS.Crt) +
				"\n      kubernetes:" + pem(accepted.Certs.K8s.Crt) + "\n"}
		}
		path := s.of(nodes, edits...)
		text, err := yaml.Marshal(bundle)
		require.NoError(t, err)
		secret := filepath.Join(t.TempDir(), "secrets.yaml")
		require.NoError(t, os.WriteFile(secret, text, 0o600))
		s.must("sh", "-c", "pulumi config set --stack small --config-file "+path+" --secret --path talos-proxmox:cluster.secretsBundle <"+secret)

		return path
	}
	started := time.Now()
	c.refuses(file(&next, before), "certs.os is an authority that the nodes do not accept yet")
	assert.Empty(t, s.trace(started).of("talos.apply"))

	for _, step := range [][2]*secrets.Bundle{{before, &next}, {&next, before}, {&next, nil}} {
		c.edit(file(step[0], step[1]))
		c.kubeconfig, c.talosconfig = c.output("kubeconfig"), c.output("talosconfig")
		c.hasNodes("cp-1", "worker-4")
		c.talosAnswers()
		c.isSettled()
		if step[0] == before {
			c.refuses(file(&next, nil), "write the certificate of the one before under cluster.acceptedCAs.talos")
		}
	}
	text, err := os.ReadFile(c.talosconfig)
	require.NoError(t, err)
	assert.Contains(t, string(text), base64.StdEncoding.EncodeToString(fresh.Certs.OS.Crt), "the new authority is the only one that is trusted")
	text, err = os.ReadFile(c.kubeconfig)
	require.NoError(t, err)
	assert.NotContains(t, string(text), base64.StdEncoding.EncodeToString(before.Certs.K8s.Crt))
	assert.Empty(t, s.trace(started).of("pve.qmreboot", "talos.reboot", "node.down"), "no node went down")
}
