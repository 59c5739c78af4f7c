// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package tests_test

import (
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"
)

// alone returns the edits that leave the small cluster one node.
func alone(edits ...string) []string {
	return append([]string{
		"    cp-2: {role: controlplane, vmId: 302, networks: {lan: {address: 10.30.0.2}}}\n", "",
		"    cp-3: {role: controlplane, vmId: 303, networks: {lan: {address: 10.30.0.3}}}\n", "",
	}, edits...)
}

// TestOneNodeIsCaredFor changes a node by hand, which `make drift` names; renews its certificate; and
// refuses to replace it.
func TestOneNodeIsCaredFor(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	one := s.up("small", s.small(alone()...))
	tpx := s.build("cmd/tpx")

	same := s.must(tpx, "drift", "small")
	assert.Equal(t, "cluster \"small\": all 1 nodes are as the stack has them\n", same.stdout)
	one.onNode("10.30.0.1", "label", "tier", "silver")
	drifted := s.try(tpx, "drift", "small")
	assert.Equal(t, 1, drifted.code, drifted.all())
	assert.Equal(t, "cp-1 (10.30.0.1): configuration: machine.nodeLabels.tier was added: silver\n", drifted.stdout)

	before := one.certificate()
	one.edit(s.small(alone("readyTimeout: 4m", "readyTimeout: 4m\n    kubeconfigRenewal: 8759h59m59s")...))
	one.kubeconfig = one.output("kubeconfig")
	after := one.certificate()
	assert.NotEqual(t, before.SerialNumber, after.SerialNumber, "a certificate that ends soon is renewed")
	one.hasNodes("cp-1")
	one.edit(s.small(alone()...))
	one.kubeconfig = one.output("kubeconfig")
	assert.Equal(t, after.SerialNumber, one.certificate().SerialNumber, "one that lives long stays")
	one.isSettled()

	renewed := func(edits ...string) string {
		return s.small(alone(append([]string{"readyTimeout: 4m", "readyTimeout: 4m\n    renewCertificates: 1"}, edits...)...)...)
	}
	earlier, err := os.ReadFile(one.talosconfig)
	require.NoError(t, err)
	one.edit(renewed())
	one.kubeconfig, one.talosconfig = one.output("kubeconfig"), one.output("talosconfig")
	assert.NotEqual(t, after.SerialNumber, one.certificate().SerialNumber, "made anew on request")
	now, err := os.ReadFile(one.talosconfig)
	require.NoError(t, err)
	assert.NotEqual(t, string(earlier), string(now))
	one.talosAnswers()
	one.isSettled()

	// An edit that reboots machines starts one that is off: there is nothing to wait for.
	s.power(301, "stop", "stopped")
	s.must("pulumi", "up", "--refresh", "--stack", "small", "--config-file", renewed("memory: 2048", "memory: 3072"),
		"--yes", "--skip-preview", "--non-interactive")
	one.hasNodes("cp-1")

	refused := s.try("pulumi", "preview", "--stack", "small", "--non-interactive", "--config-file",
		renewed("readyTimeout: 4m", "readyTimeout: 4m\n    replace: {cp-1: 1}"))
	assert.NotZero(t, refused.code)
	assert.Contains(t, refused.all(), "cp-1 is the cluster's only control plane: with its machine goes all that the cluster holds")
}

// TestToolShowsAndHandsOutACluster asks a cluster for its status, takes its credentials as files and among
// others', and backs it up.
func TestToolShowsAndHandsOutACluster(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.up("small", s.small(alone()...))
	tpx, dir := s.build("cmd/tpx"), t.TempDir()

	shown := s.must(tpx, "status", "small")
	assert.Regexp(t, `(?m)^cp-1 +10\.30\.0\.1 +controlplane +running +v1\.12\.4 +v1\.\d+\.\d+ +yes +member *$`, shown.stdout)
	assert.Regexp(t, `(?m)^talosconfig ends on \d{4}-\d\d-\d\d, in \d+ days$`, shown.stdout)
	var reports []struct{ Nodes []struct{ Etcd string } }
	require.NoError(t, json.Unmarshal([]byte(s.must(tpx, "status", "small", "--json").stdout), &reports))
	require.Equal(t, "member", reports[0].Nodes[0].Etcd)

	kubeconfig, talosconfig := filepath.Join(dir, "kubeconfig"), filepath.Join(dir, "talosconfig")
	into := []string{"access", "small", "--kubeconfig", kubeconfig, "--talosconfig", talosconfig}
	s.must(append([]string{tpx}, into...)...)
	for _, path := range []string{kubeconfig, talosconfig} {
		info, err := os.Stat(path)
		require.NoError(t, err)
		assert.Equal(t, os.FileMode(0o600), info.Mode(), path)
	}
	s.must(append(append([]string{tpx}, into...), "--merge")...)
	assert.Contains(t, s.must("kubectl", "--kubeconfig", kubeconfig, "get", "nodes", "-o", "name").stdout, "node/cp-1")

	backup := filepath.Join(dir, "now.snapshot")
	s.must(tpx, "backup", "small", "-o", backup)
	info, err := os.Stat(backup)
	require.NoError(t, err)
	assert.Equal(t, os.FileMode(0o600), info.Mode())
	again := s.try(tpx, "backup", "small", "-o", backup)
	assert.Equal(t, 2, again.code, "a file that is there is not written over")
}

// certificate returns the administrator's in the kubeconfig.
func (r *running) certificate() *x509.Certificate {
	r.t.Helper()

	text, err := os.ReadFile(r.kubeconfig)
	require.NoError(r.t, err)
	var parsed struct {
		Users []struct {
			User struct {
				Certificate string `yaml:"client-certificate-data"`
			} `yaml:"user"`
		} `yaml:"users"`
	}
	require.NoError(r.t, yaml.Unmarshal(text, &parsed))
	require.Len(r.t, parsed.Users, 1)
	data, err := base64.StdEncoding.DecodeString(parsed.Users[0].User.Certificate)
	require.NoError(r.t, err)
	block, _ := pem.Decode(data)
	require.NotNil(r.t, block)
	cert, err := x509.ParseCertificate(block.Bytes)
	require.NoError(r.t, err)

	return cert
}

// TestSnapshotBringsAClusterBack saves etcd before an upgrade, loses the only machine, and restores the
// cluster as docs/lifecycle.md says.
func TestSnapshotBringsAClusterBack(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	dir := filepath.Join(t.TempDir(), "snapshots")
	saving := []string{"readyTimeout: 4m", "readyTimeout: 4m\n    snapshotDirectory: " + dir}
	one := s.up("small", s.small(alone(saving...)...))
	s.must("kubectl", "--kubeconfig", one.kubeconfig, "create", "configmap", "kept", "--from-literal=a=b")

	upgraded := one.edit(s.small(alone(append(saving, "version: v1.12.4", "version: v1.12.5")...)...))
	assert.Regexp(t, `cluster "small" is ready: 1 control plane and 0 workers at \S+; credentials: .*\n *configurations: 1 node in \d+s\n *Talos v1.12.5: 1 node in \d+s`,
		upgraded.all())
	assert.LessOrEqual(t, strings.Count(upgraded.diagnostics(), "cp-1"), 3, "what stays to be read of a node: %s", upgraded.diagnostics())
	files, err := filepath.Glob(filepath.Join(dir, "small-talos-v1.12.4-*Z.snapshot"))
	require.NoError(t, err)
	require.Len(t, files, 1)
	info, err := os.Stat(files[0])
	require.NoError(t, err)
	assert.Equal(t, os.FileMode(0o600), info.Mode())

	tpx := s.build("cmd/tpx")
	refused := s.try(tpx, "restore", "small", "--snapshot", files[0])
	assert.Equal(t, 2, refused.code)
	assert.Contains(t, refused.all(), "etcd runs on cp-1 (10.30.0.1): a snapshot is restored only where etcd is lost on every control plane")

	impatient := s.small(alone("version: v1.12.4", "version: v1.12.5", "readyTimeout: 4m", "readyTimeout: 40s\n    snapshotDirectory: "+dir)...)
	lost := s.try("pulumi", "up", "--stack", "small", "--config-file", impatient, "--yes", "--skip-preview", "--non-interactive",
		"--replace", s.urn("small", "small-cp-1-vm"))
	assert.NotZero(t, lost.code, "etcd is gone with the machine")
	assert.Contains(t, lost.all(), "services: etcd not running")

	started := time.Now()
	restored := s.must(tpx, "restore", "small", "--snapshot", files[0])
	assert.Contains(t, restored.stdout, "cp-1 (10.30.0.1) starts etcd with "+filepath.Base(files[0]))
	one.edit(s.small(alone(append(saving, "version: v1.12.4", "version: v1.12.5")...)...))
	one.hasNodes("cp-1")
	s.must("kubectl", "--kubeconfig", one.kubeconfig, "get", "configmap", "kept")
	assert.Len(t, s.trace(started).of("talos.bootstrap"), 1, "the operator's own")
	one.isSettled()
}

// diagnostics returns what a run leaves to be read at its end, without the headings of resources.
func (r result) diagnostics() string {
	_, text, _ := strings.Cut(r.stdout, "\nDiagnostics:\n")
	text, _, _ = strings.Cut(text, "\nOutputs:\n")
	var lines []string
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, "    ") {
			lines = append(lines, line)
		}
	}

	return strings.Join(lines, "")
}
