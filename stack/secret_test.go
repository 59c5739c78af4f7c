// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package stack_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/talos-proxmox/talos-proxmox/stack"
)

const secretStack = `config:
  talos-proxmox:proxmox: {defaultHost: pve1, apiToken: {secure: "root@pam!ci=0123-abcd"}}
  talos-proxmox:image: {extensions: [qemu-guest-agent]}
  talos-proxmox:cluster: {name: secret}
  talos-proxmox:talos:
    patches:
      all:
        - inline: {machine: {env: {TOKEN: {secure: hush-one}, PLAIN: open}}}
    registries:
      docker.io: {username: me, password: {secure: hush-two}}
  talos-proxmox:nodes:
    cp-1: {role: controlplane, vmId: 101, networks: {lan: {address: 10.0.0.11/24}}}
`

func TestSecureValuesAreKnownExactlyWithTheFile(t *testing.T) {
	t.Parallel()
	s, err := load(t, secretStack)
	require.NoError(t, err)
	assert.Equal(t, []string{"hush-one", "hush-two", "root@pam!ci=0123-abcd"}, s.SecureValues)
	assert.Equal(t, "hush-two", s.Talos.Registries["docker.io"].Password.Reveal())
	assert.Equal(t, "machine:\n    env:\n        PLAIN: open\n        TOKEN: hush-one\n", string(*s.Talos.Patches.All[0].Inline))
}

func TestSecureValuesAreAllThatMayBeWithoutTheFile(t *testing.T) {
	t.Parallel()
	s, err := stack.Load(source(t, secretStack))
	require.NoError(t, err)
	assert.Equal(t, []string{"hush-one", "hush-two", "open", "root@pam!ci=0123-abcd"}, s.SecureValues)
}

func TestPlainSecretIsRefusedWithoutTheFile(t *testing.T) {
	t.Parallel()
	s := source(t, secretStack)
	s.SecretKeys = nil
	_, err := stack.Load(s)
	require.EqualError(t, err, `stack test: 3 problems
  proxmox.apiToken: must be a secret: run `+"`pulumi config set --secret --path 'talos-proxmox:proxmox.apiToken'`"+`
  talos.patches.all[0].inline.machine.env.TOKEN: holds the value of TOKEN in plain text: write the value as a secret
  talos.registries["docker.io"].password: must be a secret: run `+
		"`pulumi config set --secret --path 'talos-proxmox:talos.registries[\"docker.io\"].password'`")
}

// TestSecretsAreNeverPrinted breaks everything around secrets and looks for them in the error.
func TestSecretsAreNeverPrinted(t *testing.T) {
	t.Parallel()
	for path, text := range map[string]string{
		"apiToken":       `talos-proxmox:proxmox: {apiToken: {secure: "hunter2 hunter2"}}`,
		"ageKey":         `talos-proxmox:gitops: {provider: flux, git: {url: "https://a.example.com/b"}, sops: {ageKey: {secure: hunter2}}}`,
		"privateKey":     `talos-proxmox:proxmox: {ssh: {username: root, privateKey: {secure: hunter2}}}`,
		"bundle":         `talos-proxmox:cluster: {secretsBundle: {secure: "hunter2: [hunter2"}}`,
		"plain":          `talos-proxmox:proxmox: {password: hunter2}`,
		"block":          `talos-proxmox:proxmox: {password: {hunter2: hunter2}}`,
		"text":           `talos-proxmox:talos: {trustedRoots: {a: hunter2}, patches: {all: [{inline: "hunter2: [hunter2"}]}}`,
		"text twice":     `talos-proxmox:kubernetes: {apiServer: {auditPolicy: hunter2, env: {A: 12}}}`,
		"url":            `talos-proxmox:gitops: {provider: flux, git: {url: "https://me:hunter2@a.example.com/b"}}`,
		"url with auth":  `talos-proxmox:gitops: {provider: flux, git: {url: "https://me:hunter2@a.example.com/b", auth: {type: ssh}}}`,
		"url with port":  `talos-proxmox:gitops: {provider: flux, git: {url: "https://me:hunter2@a.example.com:99999/b"}}`,
		"mirror":         `talos-proxmox:talos: {registries: {a: {endpoints: ["ftp://me:hunter2@a"]}}}`,
		"chart":          `talos-proxmox:manifests: {charts: {a: {repository: "ftp://me:hunter2@a"}}}`,
		"factory":        `talos-proxmox:image: {factoryUrl: "ftp://me:hunter2@a"}`,
		"ssh url":        `talos-proxmox:gitops: {provider: flux, git: {url: "ssh://me:hunter2@a.example.com/b"}}`,
		"structural":     `talos-proxmox:cluster: {name: {secure: hunter2}, vip: {secure: hunter2}}`,
		"secure number":  `talos-proxmox:nodes: {a: {vmId: {secure: hunter2}, role: {secure: hunter2}}}`,
		"secure in list": `talos-proxmox:cluster: {nameservers: [{secure: hunter2}]}`,
	} {
		t.Run(path, func(t *testing.T) {
			t.Parallel()
			_, err := load(t, "config:\n  "+text+"\n")
			require.Error(t, err)
			assert.NotContains(t, err.Error(), "hunter2")
			assert.NotContains(t, fmt.Sprintf("%+v %#v", err, err), "hunter2")
		})
	}
}

func TestSecureBlockIsRefused(t *testing.T) {
	t.Parallel()
	_, err := load(t, "config:\n  talos-proxmox:cluster: {secure: '{\"name\":\"hunter2\"}'}\n")
	require.ErrorContains(t, err, "\n  cluster (line 2): must not be secure: only secrets and free text may; ")
	assert.NotContains(t, err.Error(), "hunter2")
}

// TestSecureValueThatCannotBeFoundIsRefused: without the file nothing says which of the key's plain
// settings is the secure one, so none of them may go on.
func TestSecureValueThatCannotBeFoundIsRefused(t *testing.T) {
	t.Parallel()
	s := source(t, secretStack)
	s.Values["talos-proxmox:defaults"] = `{"controlPlane":{"description":"hunter2"}}`
	s.SecretKeys = append(s.SecretKeys, "talos-proxmox:defaults")
	_, err := stack.Load(s)
	require.EqualError(t, err, `stack test: 1 problem
  defaults: holds a secure value where only plain settings stand: only secrets and free text may be secure`)
}
