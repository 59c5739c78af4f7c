// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package manifests_test

import (
	"context"
	"encoding/json"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/talos-proxmox/talos-proxmox/internal/machineconfig"
	"github.com/talos-proxmox/talos-proxmox/internal/manifests"
	"github.com/talos-proxmox/talos-proxmox/internal/versions"
	"github.com/talos-proxmox/talos-proxmox/spec"
)

// ciliumModule is where the Go module cache has Cilium's sources, its chart and its definitions.
var ciliumModule = sync.OnceValues(func() (string, error) {
	out, err := exec.Command("go", "mod", "download", "-json", "github.com/cilium/cilium@v"+versions.CiliumChart).Output()
	if err != nil {
		return "", err
	}
	var module struct{ Dir string }

	return module.Dir, json.Unmarshal(out, &module)
})

// ciliumDir skips the test, loudly, where the module cannot be had.
func ciliumDir(t *testing.T) string {
	t.Helper()
	dir, err := ciliumModule()
	if err != nil {
		t.Skipf("NOT TESTED: Cilium's chart cannot be downloaded as a Go module: %v", err)
	}

	return dir
}

// fixedCertificates are made once in a test run.
var fixedCertificates = sync.OnceValues(func() (manifests.Certificates, error) {
	return manifests.NewCertificates("prod", time.Now())
})

func certificates(t *testing.T) *manifests.Certificates {
	t.Helper()
	c, err := fixedCertificates()
	require.NoError(t, err)

	return &c
}

// node has a role and nothing else of interest here.
func node(name string, role spec.Role, address string) spec.NamedNode {
	return spec.NamedNode{Name: name, Node: spec.Node{
		Role: spec.Ptr(role), Networks: map[string]spec.Network{"lan": {Address: spec.Ptr(address)}},
	}}
}

// clusterConfig returns a control plane and a worker, complete.
func clusterConfig(change ...func(*spec.Config)) spec.Config {
	cfg := spec.Config{
		Cluster:    spec.Cluster{Name: spec.Ptr("prod")},
		Kubernetes: spec.Kubernetes{Version: spec.Ptr("v1.35.0")},
		Nodes:      []spec.NamedNode{node("cp-1", spec.ControlPlane, "10.0.0.1/24"), node("work-1", spec.Worker, "10.0.0.2/24")},
	}
	for _, f := range change {
		f(&cfg)
	}

	return cfg.WithDefaults()
}

// withCilium uses the genuine chart.
func withCilium(t *testing.T, change func(*spec.Cilium)) func(*spec.Config) {
	t.Helper()
	dir := ciliumDir(t)

	return func(c *spec.Config) {
		c.CNI.Name = spec.Ptr("cilium")
		c.CNI.Cilium = &spec.Cilium{Chart: spec.Chart{Repository: spec.Ptr(filepath.Join(dir, "install", "kubernetes"))}}
		if change != nil {
			change(c.CNI.Cilium)
		}
	}
}

// input has no files but those given.
func input(t *testing.T, cfg spec.Config) manifests.Input {
	t.Helper()

	return manifests.Input{Config: cfg, Certificates: certificates(t), Charts: manifests.Cache{Dir: t.TempDir()}}
}

// dayZero fails the test where the manifests cannot be made.
func dayZero(t *testing.T, in manifests.Input) []machineconfig.Manifest {
	t.Helper()
	all, err := manifests.DayZero(context.Background(), in)
	require.NoError(t, err)

	return all
}

// names returns the manifests' names, in order.
func names(all []machineconfig.Manifest) []string {
	list := []string{}
	for _, m := range all {
		list = append(list, m.Name)
	}

	return list
}
