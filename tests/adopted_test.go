// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package tests_test

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/siderolabs/talos/pkg/machinery/config/configloader"
	"github.com/siderolabs/talos/pkg/machinery/config/generate/secrets"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"
)

// TestAClusterIsAdopted forgets all that Pulumi knew of a cluster and takes the cluster over again, with
// its secrets and the ids of its VMs: nothing restarts, etcd is not started again, and from there it is
// as any other cluster.
func TestAClusterIsAdopted(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.adopts()
}

// TestAClusterIsAdoptedWithGenuinePlugins does the same with the providers' own plugins.
func TestAClusterIsAdoptedWithGenuinePlugins(t *testing.T) {
	heavy(t)
	genuine(t)
	s := newSite(t)
	s.providers = "real"
	s.adopts()
}

func (s *site) adopts() {
	t := s.t
	configs := filepath.Join(t.TempDir(), "machines")
	keep := "  talos-proxmox:output: {machineConfigDirectory: " + configs + "}\n  talos-proxmox:lifecycle:\n"
	s.up("small", s.small("  talos-proxmox:lifecycle:\n", keep))
	s.must("pulumi", "stack", "rm", "small", "--force", "--yes", "--preserve-config")
	before := s.status()

	bundle := bundleOf(t, filepath.Join(configs, "cp-1.yaml"))
	adopted := func(edits ...string) string {
		file := s.small(append([]string{"    name: small\n", "    name: small\n    adopted: true\n"}, edits...)...)
		set := "pulumi config set --stack small --config-file " + file + " --secret --path talos-proxmox:"
		s.must("sh", "-c", set+"cluster.secretsBundle <"+bundle+" && printf %s $PROXMOX_VE_API_TOKEN | "+set+"proxmox.apiToken")

		return file
	}

	s.create("small")
	tpx := s.build("cmd/tpx")
	stranger := s.try(tpx, "adopt", "small", "--config-file", adopted("cp-3: {role", "cp-4: {role"))
	assert.NotZero(t, stranger.code)
	assert.Contains(t, stranger.all(), `nodes.cp-4.vmId: VM 303 is named "cp-3", not "cp-4": give the node's own VM, or rename that VM`)

	firmware := s.try(tpx, "adopt", "small", "--config-file", adopted("osDisk: {size: 10}", "osDisk: {size: 10}\n      bios: ovmf"))
	assert.NotZero(t, firmware.code)
	assert.Contains(t, firmware.all(), "nodes.cp-1.efiDisk: VM 301 has no EFI disk, not the EFI disk 4m raw: write what is there")

	file := adopted()
	taken := s.must(tpx, "adopt", "small", "--config-file", file)
	require.Equal(t, "VM 301 of cp-1 is adopted\nVM 302 of cp-2 is adopted\nVM 303 of cp-3 is adopted\n", taken.stdout)
	token := s.must("printenv", "PROXMOX_VE_API_TOKEN").stdout
	assert.NotContains(t, s.must("pulumi", "stack", "export", "--stack", "small").stdout, strings.TrimSpace(token))
	for urn, edit := range s.planned("small", file) {
		assert.NotContains(t, edit.Op, "replace", urn)
		if strings.Contains(urn, "$proxmoxve:VM/") {
			assert.Equal(t, "update", edit.Op, urn)
			for _, property := range edit.Changed {
				assert.Truef(t, strings.HasPrefix(property, "cdrom"), "%s: %s: all that is unknown is the image, which is downloaded", urn, property)
			}
		}
	}

	started := time.Now()
	c := s.up("small", file)
	assert.Equal(t, before, s.status())
	happened := s.trace(started)
	assert.Empty(t, happened.of("talos.bootstrap", "talos.upgrade", "talos.reboot", "node.down"), "nothing goes down")
	for object, what := range happened.touched() {
		assert.NotContainsf(t, strings.Join(what, " "), "pve.qm", "%s is not stopped, started or made", object)
	}
	c.isSettled()

	started = time.Now()
	file = adopted("memory: 2048", "memory: 3072")
	s.up("small", file)
	s.passesTheGate(started, 1)
	s.down(started, "10.30.0.1", "10.30.0.2", "10.30.0.3")
	assert.True(t, s.status().Clusters[0].Healthy)

	// A VM that is lost is a lost node here too.
	s.power(302, "stop", "stopped")
	s.byHand(http.MethodDelete, "/nodes/pve1/qemu/302", nil)
	require.Eventually(t, func() bool { return len(s.status().VMs) == 2 }, time.Minute, 100*time.Millisecond)
	r := s.must("pulumi", "up", "--refresh", "--stack", "small", "--config-file", file, "--yes", "--skip-preview", "--non-interactive")
	assert.Contains(t, r.all(), "cp-2 rejoins: its earlier etcd member is removed")
	assert.Len(t, s.status().Nodes, 3)
	assert.True(t, s.status().Clusters[0].Healthy)
}

// bundleOf returns the secrets bundle that a control plane's configuration holds, as "talosctl gen secrets
// --from-controlplane-config" makes it.
func bundleOf(t *testing.T, path string) string {
	t.Helper()
	config, err := configloader.NewFromFile(path)
	require.NoError(t, err)
	bundle, err := secrets.NewBundleFromConfig(secrets.NewClock(), config)
	require.NoError(t, err)
	text, err := yaml.Marshal(bundle)
	require.NoError(t, err)
	file := filepath.Join(t.TempDir(), "secrets.yaml")
	require.NoError(t, os.WriteFile(file, text, 0o600))

	return file
}

// planned holds what a preview says of a resource.
type planned struct {
	Op      string
	Changed []string // properties
}

// planned returns the resources that a preview changes, by URN.
func (s *site) planned(stack, file string) map[string]planned {
	s.t.Helper()
	r := s.must("pulumi", "preview", "--stack", stack, "--config-file", file, "--json", "--non-interactive")
	var preview struct {
		Steps []struct {
			Op   string   `json:"op"`
			URN  string   `json:"urn"`
			Diff []string `json:"diffReasons"`
		} `json:"steps"`
	}
	require.NoError(s.t, json.Unmarshal([]byte(r.stdout), &preview))
	found := map[string]planned{}
	for _, step := range preview.Steps {
		found[step.URN] = planned{Op: step.Op, Changed: step.Diff}
	}

	return found
}
