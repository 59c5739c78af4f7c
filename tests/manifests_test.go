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

// alone is the dev stack with one node and without GitOps, with further settings at its end.
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

const (
	manifestsAtFirst = `  talos-proxmox:manifests:
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

// TestEditedManifestsTakeEffect edits day-0 manifests of a running cluster: Talos itself would only
// create what is missing.
func TestEditedManifestsTakeEffect(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	dev := s.up("dev", s.alone(manifestsAtFirst))
	assert.Equal(t, map[string]string{"colour": "green", "shape": "round"}, dev.data("settings"))

	dev.edit(s.alone(manifestsEdited))
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
	gone := s.try("kubectl", "--kubeconfig", dev.kubeconfig, "get", "configmap", "settings", "-n", "app")
	assert.Contains(t, gone.all(), "NotFound")
	s.must("kubectl", "--kubeconfig", dev.kubeconfig, "get", "namespace", "app") // its manifest went earlier
}

// data is what a ConfigMap of the app holds.
func (r *running) data(name string) map[string]string {
	r.t.Helper()
	var found struct {
		Data map[string]string `json:"data"`
	}
	r.kubectl(&found, "get", "configmap", name, "-n", "app")

	return found.Data
}
