// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package tests_test

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// alone returns the dev stack with one node and without GitOps, with further settings at its end.
func (s *site) alone(more ...string) string {
	s.t.Helper()

	file := s.stackFile("Pulumi.dev.yaml",
		"    ctrl-01: {role: controlplane, vmId: 801, networks: {lan: {address: 10.200.5.2}}}\n", "",
		"    ctrl-02: {role: controlplane, vmId: 802, networks: {lan: {address: 10.200.5.3}}}\n", "")
	content, err := os.ReadFile(file)
	require.NoError(s.t, err)
	text, _, found := strings.Cut(string(content), "  talos-proxmox:gitops:\n")
	require.True(s.t, found, "the dev stack has changed: adapt the test")
	require.NoError(s.t, os.WriteFile(file, []byte(text+strings.Join(more, "")), 0o600))

	return file
}

// definition is where the Gateway API's documentation has a definition fetched from.
const definition = "https://raw.githubusercontent.com/kubernetes-sigs/gateway-api/v1.2.0/config/crd/standard/gateway.networking.k8s.io_gateways.yaml"

const (
	manifestsAtFirst = `  talos-proxmox:manifests:
    extra: [` + definition + `]
    inline:
      app:
        inline: |
          apiVersion: v1
          kind: Namespace
          metadata: {name: app}
          ---
          apiVersion: v1
          kind: ConfigMap
          metadata: {name: settings, namespace: app}
          data: {colour: green, shape: round}
      job:
        inline: |
          apiVersion: batch/v1
          kind: Job
          metadata: {name: once, namespace: app}
          spec: {template: {spec: {restartPolicy: Never, containers: [{name: a, image: example.com/a:v1}]}}}
`
	manifestsEdited = `  talos-proxmox:manifests:
    inline:
      app:
        inline: |
          apiVersion: v1
          kind: ConfigMap
          metadata: {name: settings, namespace: app}
          data: {colour: red}
      job:
        inline: |
          apiVersion: batch/v1
          kind: Job
          metadata: {name: once, namespace: app}
          spec: {template: {spec: {restartPolicy: Never, containers: [{name: a, image: example.com/a:v2}]}}}
      new:
        inline: |
          apiVersion: v1
          kind: ConfigMap
          metadata: {name: more, namespace: app}
`
	manifestsReduced = `  talos-proxmox:manifests:
    inline:
      new:
        inline: |
          apiVersion: v1
          kind: ConfigMap
          metadata: {name: more, namespace: app}
`
)

// bundleVersion is the release of the Gateway API that a definition is of.
const bundleVersion = `{.metadata.annotations.gateway\.networking\.k8s\.io/bundle-version}`

// TestEditedManifestsTakeEffect edits day-0 manifests of a running cluster: Talos itself would only
// create what is missing.
func TestEditedManifestsTakeEffect(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	dev := s.up("dev", s.alone(manifestsAtFirst))
	assert.Equal(t, map[string]string{"colour": "green", "shape": "round"}, dev.data("settings"))
	dev.eventually("v1.2.0", "crd", "", "gateways.gateway.networking.k8s.io", bundleVersion)

	newer := strings.ReplaceAll(definition, "v1.2.0", "v1.3.0")
	edited := s.alone(strings.Replace(manifestsEdited, "    inline:\n", "    extra: ["+newer+"]\n    inline:\n", 1))
	said := s.must("env", "HTTPS_PROXY=http://127.0.0.1:9", "HTTP_PROXY=http://127.0.0.1:9",
		"pulumi", "preview", "--stack", "dev", "--config-file", edited, "--non-interactive").all()
	assert.Contains(t, said, newer+" will be fetched, and what it holds applied")
	assert.Contains(t, said, "what "+definition+" held will be deleted where no other manifest has it")
	dev.edit(edited)
	assert.Equal(t, "v1.3.0", dev.field("crd", "", "gateways.gateway.networking.k8s.io", bundleVersion), "Talos would leave it as it is")
	assert.Equal(t, map[string]string{"colour": "red"}, dev.data("settings"), "what left the manifest left the object")
	var job struct {
		Spec struct {
			Template struct {
				Spec struct {
					Containers []struct {
						Image string `json:"image"`
					} `json:"containers"`
				} `json:"spec"`
			} `json:"template"`
		} `json:"spec"`
	}
	dev.kubectl(&job, "get", "job", "once", "-n", "app")
	assert.Equal(t, "example.com/a:v2", job.Spec.Template.Spec.Containers[0].Image, "a Job is made anew")
	dev.isSettled()

	file := s.alone(manifestsReduced)
	preview := s.must("pulumi", "preview", "--stack", "dev", "--config-file", file, "--non-interactive").all()
	assert.Contains(t, preview, "ConfigMap app/settings will be deleted, since its manifest is gone")
	dev.edit(file)
	dev.data("more")
	assert.Equal(t, "v1.3.0", dev.field("crd", "", "gateways.gateway.networking.k8s.io", bundleVersion), "definitions stay")
	gone := s.try("kubectl", "--kubeconfig", dev.kubeconfig, "get", "configmap", "settings", "-n", "app")
	assert.Contains(t, gone.all(), "NotFound")
	s.must("kubectl", "--kubeconfig", dev.kubeconfig, "get", "namespace", "app") // its manifest went earlier
}

// data returns what a ConfigMap of the app holds.
func (r *running) data(name string) map[string]string {
	r.t.Helper()
	var found struct {
		Data map[string]string `json:"data"`
	}
	r.kubectl(&found, "get", "configmap", name, "-n", "app")

	return found.Data
}

// TestCiliumsJobInstallsAndUpgrades starts with values that the chart refuses, mends them, and edits the
// version: the Job that installs Cilium says what is wrong, runs again, and then upgrades.
func TestCiliumsJobInstallsAndUpgrades(t *testing.T) {
	heavy(t)
	t.Parallel()
	s := newSite(t)
	const cilium = `  talos-proxmox:lifecycle: {readyTimeout: 1m}
  talos-proxmox:cni:
    name: cilium
    cilium: {install: job, chart: {version: 1.18.0, values: {hubble: {enabled: %}}}}
`
	file := func(hubble string, edits ...string) string {
		return s.alone(strings.NewReplacer(append([]string{"%", hubble}, edits...)...).Replace(cilium))
	}

	s.create("dev")
	failed := s.try("pulumi", "up", "--stack", "dev", "--config-file", file("[1]"), "--yes", "--skip-preview", "--non-interactive")
	require.NotZero(t, failed.code)
	assert.Contains(t, failed.all(), "Error: Unable to install Cilium: ")

	dev := s.up("dev", file("false"))
	const image = "{.spec.template.spec.containers[0].image}"
	assert.Contains(t, dev.field("daemonset", "kube-system", "cilium", image), ":v1.18.0")
	dev.isSettled()

	dev.edit(file("false", "1.18.0", "1.18.4"))
	dev.eventually("1", "job", "kube-system", "cilium-install", "{.status.succeeded}")
	assert.Contains(t, dev.field("daemonset", "kube-system", "cilium", image), ":v1.18.4")
	dev.isSettled()
	dev.destroy()
}
