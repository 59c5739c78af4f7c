// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package airgap_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/talos-proxmox/talos-proxmox/internal/airgap"
	"github.com/talos-proxmox/talos-proxmox/internal/machineconfig"
	"github.com/talos-proxmox/talos-proxmox/spec"
)

// vanilla is the schematic without extensions.
const vanilla = "376567988ad370138ad8b2698212367b8edcb69b5fd68c80be1f2ec7d603b4ba"

// deployment runs two images and tells a controller of a third.
const deployment = `apiVersion: apps/v1
kind: Deployment
metadata: {name: d}
spec:
  template:
    spec:
      initContainers: [{name: a, image: busybox}]
      containers:
      - name: b
        image: quay.io/org/app:v1
        args: [--solver-image=quay.io/org/solver:v2, --path=/a/b:c, https://example.com/x]
        env: [{name: SIDECAR, value: "ghcr.io/org/sidecar@sha256:0123456789012345678901234567890123456789012345678901234567890123"}]
`

func node(name string, role spec.Role, address string) spec.NamedNode {
	return spec.NamedNode{Name: name, Node: spec.Node{
		Role: spec.Ptr(role), Networks: map[string]spec.Network{"lan": {Address: spec.Ptr(address)}},
	}}
}

func cluster(change ...func(*spec.Config)) spec.Config {
	cfg := spec.Config{
		Cluster:    spec.Cluster{Name: spec.Ptr("prod")},
		Talos:      spec.Talos{Version: spec.Ptr("v1.12.4")},
		Kubernetes: spec.Kubernetes{Version: spec.Ptr("v1.35.0")},
		Nodes:      []spec.NamedNode{node("cp-1", spec.ControlPlane, "10.0.0.1/24"), node("work-1", spec.Worker, "10.0.0.2/24")},
	}
	for _, f := range change {
		f(&cfg)
	}

	return cfg.WithDefaults()
}

// mirrors send everything to one place.
func mirrors(c *spec.Config) {
	c.Images = map[string]spec.Image{spec.DefaultImage: {
		ISOMirror: spec.Ptr("https://proxy.example.com/"), InstallerMirror: spec.Ptr("harbor.example.com/talos"), Register: spec.Ptr(false),
	}}
	c.Talos.Registries = map[string]spec.Registry{
		"ghcr.io":         {Endpoints: []string{"https://harbor.example.com/v2/gh"}, OverridePath: spec.Ptr(true)},
		"registry.k8s.io": {Endpoints: []string{"https://harbor.example.com/v2/k8s"}, OverridePath: spec.Ptr(true)},
		"*":               {Endpoints: []string{"https://harbor.example.com/all"}},
	}
}

// lines returns "by from [outside]".
func lines(pulls []airgap.Pull) []string {
	var all []string
	for _, p := range pulls {
		line := p.By + " " + p.From
		if p.Outside {
			line += " outside"
		}
		all = append(all, line)
	}

	return all
}

func list(t *testing.T, in airgap.Input) ([]airgap.Pull, []string) {
	t.Helper()
	pulls, notes, err := airgap.List(context.Background(), in)
	require.NoError(t, err)

	return pulls, notes
}

func TestListWithoutMirrors(t *testing.T) {
	t.Parallel()
	pulls, notes := list(t, airgap.Input{Config: cluster(func(c *spec.Config) { c.Talos.Discovery = spec.Ptr(true) })})
	assert.Equal(t, []string{
		"host https://factory.talos.dev/image/" + vanilla + "/v1.12.4/nocloud-amd64.iso outside",
		"node factory.talos.dev/nocloud-installer/" + vanilla + ":v1.12.4 outside",
		"node ghcr.io/siderolabs/flannel:v0.27.4 outside",
		"node ghcr.io/siderolabs/kubelet:v1.35.0 outside",
		"node https://discovery.talos.dev/ outside",
		"node registry.k8s.io/coredns/coredns:v1.13.2 outside",
		"node registry.k8s.io/etcd:v3.6.7 outside",
		"node registry.k8s.io/kube-apiserver:v1.35.0 outside",
		"node registry.k8s.io/kube-controller-manager:v1.35.0 outside",
		"node registry.k8s.io/kube-proxy:v1.35.0 outside",
		"node registry.k8s.io/kube-scheduler:v1.35.0 outside",
		"node registry.k8s.io/pause:3.10 outside",
		"program https://factory.talos.dev/schematics outside",
	}, lines(pulls))
	assert.Empty(t, notes)
}

func TestListBehindMirrors(t *testing.T) {
	t.Parallel()
	pulls, notes := list(t, airgap.Input{
		Config:    cluster(mirrors),
		Manifests: []machineconfig.Manifest{{Name: "001-d", Contents: deployment}},
	})
	assert.Equal(t, []string{
		"host https://proxy.example.com/factory.talos.dev/image/" + vanilla + "/v1.12.4/nocloud-amd64.iso",
		"node harbor.example.com/all/library/busybox",
		"node harbor.example.com/gh/org/sidecar@sha256:0123456789012345678901234567890123456789012345678901234567890123",
		"node harbor.example.com/gh/siderolabs/flannel:v0.27.4",
		"node harbor.example.com/gh/siderolabs/kubelet:v1.35.0",
		"node harbor.example.com/all/talos/nocloud-installer/" + vanilla + ":v1.12.4",
		"node harbor.example.com/all/org/app:v1",
		"node harbor.example.com/all/org/solver:v2",
		"node harbor.example.com/k8s/coredns/coredns:v1.13.2",
		"node harbor.example.com/k8s/etcd:v3.6.7",
		"node harbor.example.com/k8s/kube-apiserver:v1.35.0",
		"node harbor.example.com/k8s/kube-controller-manager:v1.35.0",
		"node harbor.example.com/k8s/kube-proxy:v1.35.0",
		"node harbor.example.com/k8s/kube-scheduler:v1.35.0",
		"node harbor.example.com/k8s/pause:3.10",
	}, lines(pulls))
	assert.Empty(t, notes)
}

func TestListSaysWhatItCannotKnow(t *testing.T) {
	t.Parallel()
	pulls, notes := list(t, airgap.Input{Config: cluster(mirrors, func(c *spec.Config) {
		c.Talos.Version = spec.Ptr("v1.12.3")
		c.Manifests.Extra = []string{"https://user:hunter2@example.com/extra.yaml"}
		c.GitOps = spec.GitOps{Provider: spec.Ptr("flux"), Git: spec.Git{URL: spec.Ptr("https://git.example.com/a.git")}}
	})})
	assert.Equal(t, []string{
		"the images that Talos v1.12.3 brings itself (etcd, CoreDNS, flannel, pause) are those of v1.12.7: compare with `talosctl image default`",
		"the images that extra manifests name are not known here",
		"the images that the repository's own workloads name are not known here",
	}, notes)
	assert.Contains(t, lines(pulls), "node https://example.com/extra.yaml outside")
	assert.Contains(t, lines(pulls), "cluster https://git.example.com/a.git outside")
}

func TestMirrored(t *testing.T) {
	t.Parallel()
	registries := map[string]spec.Registry{
		"docker.io": {Endpoints: []string{"https://m.example.com/v2/dh"}, OverridePath: spec.Ptr(true)},
		"quay.io":   {Endpoints: []string{"http://m.example.com:5000"}},
	}
	for reference, want := range map[string]string{
		"busybox":                   "m.example.com/dh/library/busybox",
		"org/app:1":                 "m.example.com/dh/org/app:1",
		"docker.io/org/app:1":       "m.example.com/dh/org/app:1",
		"quay.io/org/app@sha256:0":  "m.example.com:5000/org/app@sha256:0",
		"ghcr.io/org/app:1":         "ghcr.io/org/app:1",
		"localhost/app:1":           "localhost/app:1",
		"registry.local:5000/app:1": "registry.local:5000/app:1",
	} {
		assert.Equal(t, want, airgap.Mirrored(registries, reference), reference)
	}
}
