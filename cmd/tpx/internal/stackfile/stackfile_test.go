// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package stackfile_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/talos-proxmox/talos-proxmox/cmd/tpx/internal/pulumi"
	"github.com/talos-proxmox/talos-proxmox/cmd/tpx/internal/stackfile"
	"github.com/talos-proxmox/talos-proxmox/internal/check"
	"github.com/talos-proxmox/talos-proxmox/internal/machineconfig"
)

// directories returns those with stack files that the project ships.
func directories(t *testing.T) []string {
	t.Helper()
	examples, err := filepath.Glob(filepath.Join("..", "..", "..", "..", "examples", "*"))
	require.NoError(t, err)

	return append([]string{filepath.Join("..", "..", "..", "..")}, examples...)
}

func TestTalosTakesEveryShippedStack(t *testing.T) {
	t.Parallel()
	stacks := 0
	for _, dir := range directories(t) {
		project := pulumi.Project{Dir: dir, Name: "talos-proxmox"}
		names, err := project.Stacks()
		require.NoError(t, err)
		for _, name := range names {
			s, _, err := stackfile.Load(t.Context(), project, pulumi.CLI{Dir: dir, Stack: name})
			require.NoError(t, err)
			var l check.List
			machineconfig.Check(machineconfig.Input{Config: s.Config, ReadFile: func(path string) ([]byte, error) {
				return os.ReadFile(filepath.Join(dir, path))
			}}, &l)
			assert.NoError(t, l.Err("stack "+name))
			stacks++
		}
	}
	assert.GreaterOrEqual(t, stacks, 4)
}

func TestChartsOfTheShippedStacks(t *testing.T) {
	t.Parallel()
	root := filepath.Join("..", "..", "..", "..")
	s, _, err := stackfile.Load(t.Context(), pulumi.Project{Dir: root, Name: "talos-proxmox"}, pulumi.CLI{Dir: root, Stack: "prod"})
	require.NoError(t, err)
	var found []string
	for _, c := range stackfile.Charts(s.Config) {
		found = append(found, *c.Repository+" "+*c.Name+" "+*c.Version)
	}
	assert.Equal(t, []string{
		"https://helm.cilium.io cilium 1.18.4", "https://fluxcd-community.github.io/helm-charts flux2 2.18.2",
	}, found)
}

// secretStack is a stack of a project with another name whose secrets are all closed.
const secretStack = `config:
  mine:proxmox:
    endpoint: https://pve.example.com:8006
    apiToken: {secure: v1:a}
    ssh: {username: root, privateKey: {secure: v1:b}}
    hosts: {pve1: {datastore: local-lvm}}
  mine:cluster:
    name: mine
    adopted: true
    secretsBundle: {secure: v1:c}
  mine:talos:
    version: v1.12.4
    registries: {ghcr.io: {username: robot, password: {secure: v1:d}, endpoints: [https://harbor.example.com/v2/gh], overridePath: true}}
  mine:kubernetes: {version: v1.35.0}
  mine:defaults: {all: {networks: {lan: {bridge: vmbr0, gateway: 10.0.0.1, subnet: 10.0.0.0/24}}}}
  mine:gitops:
    provider: flux
    chart: {version: 2.18.2}
    sops: {ageKey: {secure: v1:e}}
    git:
      url: ssh://git@git.example.com/lab/demo.git
      auth:
        type: ssh
        knownHosts: git.example.com ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIFT0P6ZLB5QLBiOw2Fk1fyt3RZTsnpdJBKqvrRb8xJ2Q
        privateKey: {secure: v1:f}
  mine:nodes:
    cp-1: {role: controlplane, host: pve1, vmId: 101, networks: {lan: {address: 10.0.0.11}}}
`

func TestEveryKindOfSecretMayStayClosed(t *testing.T) {
	t.Setenv("PATH", t.TempDir()) // no Pulumi
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "Pulumi.here.yaml"), []byte(secretStack), 0o600))

	s, opened, err := stackfile.Load(t.Context(), pulumi.Project{Dir: dir, Name: "mine"}, pulumi.CLI{Dir: dir, Stack: "org/mine/here"})
	require.NoError(t, err)
	assert.ErrorContains(t, opened.Closed, "there is no `pulumi` on PATH")
	assert.Equal(t, stackfile.Closed, s.Talos.Registries["ghcr.io"].Password.Reveal())
	assert.Equal(t, "mine", *s.Cluster.Name)
}
