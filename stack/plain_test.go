// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package stack_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/talos-proxmox/talos-proxmox/stack"
)

// onBase returns the base stack with text in place of one of its keys, or beside them.
func onBase(t *testing.T, text string) string {
	t.Helper()

	return read(t, "testdata/base.yaml") + text
}

// TestPlainCredentialsAreRefused writes a credential plainly in every kind of place, and looks for it in the error.
func TestPlainCredentialsAreRefused(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ text, want string }{
		"git url, a token": {
			`talos-proxmox:gitops: {provider: flux, chart: {version: 2.18.2}, git: {url: "https://hunter2@git.example.com/a.git"}}`,
			`gitops.git.url (line 16): holds credentials in an URL in plain text: give it under gitops.git.auth`,
		},
		"git url, malformed": {
			`talos-proxmox:gitops: {provider: flux, chart: {version: 2.18.2}, git: {url: "https://me:hun/ter2@git.example.com/a.git"}}`,
			`gitops.git.url (line 16): holds a password in an URL in plain text: give it under gitops.git.auth`,
		},
		"a mirror": {
			`talos-proxmox:talos: {registries: {docker.io: {endpoints: ["https://me:hunter2@mirror.example.com"]}}}`,
			`talos.registries["docker.io"].endpoints[0] (line 16): holds a password in an URL in plain text: give it as username and password of the registry`,
		},
		"a registry's name": {
			`talos-proxmox:talos: {registries: {"me:hunter2@docker.io": {endpoints: ["https://mirror.example.com"]}}}`,
			`talos.registries["…@docker.io"] (line 16): the name holds a password before a host in plain text: remove it, or give it where a secret can be written`,
		},
		"a chart's repository": {
			`talos-proxmox:manifests: {charts: {a: {repository: "oci://me:hunter2@charts.example.com", version: 1.0.0}}}`,
			`manifests.charts.a.repository (line 16): holds a password in an URL in plain text: give it as username and password beside the repository`,
		},
		"a manifest's url": {
			`talos-proxmox:manifests: {extra: ["https://raw.example.com/a.yaml?token=hunter2"]}`,
			`manifests.extra[0] (line 16): holds the value of token in plain text: send it as one of manifests.extraHeaders`,
		},
		"a chart's values": {
			`talos-proxmox:manifests: {charts: {a: {repository: "https://charts.example.com", version: 1.0.0, values: {auth: {password: hunter2}}}}}`,
			`manifests.charts.a.values.auth.password (line 16): holds the value of password in plain text: write the value as a secret`,
		},
		"values as text": {
			`talos-proxmox:manifests: {charts: {a: {repository: "https://charts.example.com", version: 1.0.0, values: "auth: {password: hunter2}"}}}`,
			`manifests.charts.a.values (line 16): holds the value of password in plain text: write the text as a secret`,
		},
		"a Kubernetes Secret": {
			`talos-proxmox:manifests: {inline: {a: {inline: {apiVersion: v1, kind: Secret, metadata: {name: a}, stringData: {any: hunter2}}}}}`,
			`manifests.inline.a.inline.stringData.any (line 16): holds a Kubernetes Secret in plain text: write the value as a secret`,
		},
		"an environment variable": {
			`talos-proxmox:kubernetes: {apiServer: {env: {HTTPS_PROXY: "http://me:hunter2@proxy.example.com:3128"}}}`,
			`kubernetes.apiServer.env.HTTPS_PROXY (line 16): holds a password in an URL in plain text: write the text as a secret`,
		},
		"a flag": {
			`talos-proxmox:kubernetes: {apiServer: {extraArgs: {my-token: hunter2}}}`,
			`kubernetes.apiServer.extraArgs.my-token (line 16): holds the value of my-token in plain text: remove it, or give it where a secret can be written`,
		},
		"a token over http": {
			`talos-proxmox:gitops: {provider: flux, chart: {version: 2.18.2}, git: {url: "http://git.example.com/a.git", auth: {type: token, password: {secure: hunter2}}}}`,
			`gitops.git.url (line 16): sends the credentials of gitops.git.auth in plain text: write https://`,
		},
		"a chart's password over http": {
			`talos-proxmox:manifests: {charts: {a: {repository: "http://charts.example.com", version: 1.0.0, username: me, password: {secure: hunter2}}}}`,
			`manifests.charts.a.repository (line 16): sends username and password in plain text: write https://`,
		},
		"headers over http": {
			`talos-proxmox:manifests: {extra: ["http://a.example.com/a.yaml"], extraHeaders: {X-Key: {secure: hunter2}}}`,
			`manifests.extra[0] (line 16): sends manifests.extraHeaders in plain text: write https://`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := load(t, onBase(t, "  "+c.text+"\n"))
			require.Error(t, err)
			assert.NotContains(t, err.Error(), "hunter2")
			assert.Equal(t, "stack test: 1 problem\n  "+c.want, err.Error())
		})
	}
}

// replaced returns a text with another piece in it.
func replaced(text, old, piece string) string { return strings.ReplaceAll(text, old, piece) }

// TestPlainCredentialsInKeysOfTheBase stands apart, since the base stack has these keys.
func TestPlainCredentialsInKeysOfTheBase(t *testing.T) {
	t.Parallel()
	const remove, kernel = "remove it, or give it where a secret can be written", "remove it, since whoever reads the node's command line reads it"
	assert.Equal(t, []string{
		"cluster.endpoint: holds a password in an URL in plain text: " + remove,
		"defaults.all.description: holds a GitHub token in plain text: " + remove,
		"image.kernelArgs[0]: holds a password in an URL in plain text: " + kernel,
		"image.kernelArgs[2]: holds the value of net.password in plain text: " + kernel,
	}, problemsOf(t, overlay(t, map[string]any{
		"image":    map[string]any{"kernelArgs": []any{"talos.config=https://me:hunter2@example.com/c", "console=ttyS0", "net.password=hunter2"}},
		"cluster":  map[string]any{"endpoint": "https://me:hunter2@api.example.com:6443"},
		"defaults": map[string]any{"all": map[string]any{"description": "ghp_abcdefghijklmnopqrstuvwxyz012345hunter2"}},
	})))
}

// TestRefusedValuesThatCouldBeCredentialsAreNotPrinted puts a secret into a field of another kind.
func TestRefusedValuesThatCouldBeCredentialsAreNotPrinted(t *testing.T) {
	t.Parallel()
	const token = "8f14e45f-ceea-467a-9575-1d2e7c0a1b2c"
	for name, set := range map[string]map[string]any{
		"a user":       {"proxmox": map[string]any{"username": token}},
		"a name":       {"cluster": map[string]any{"name": "Zm9vYmFyMTIzNDU2Nzg5"}},
		"a host":       {"proxmox": map[string]any{"defaultHost": "sEcReT0123456789abc"}},
		"an address":   {"cluster": map[string]any{"vip": "//me:hunter2@10.0.0.5"}},
		"an endpoint":  {"proxmox": map[string]any{"endpoint": "https//root@pam:hunter2@pve:8006"}},
		"a role":       {"nodes": map[string]any{"w-1": map[string]any{"role": token}}},
		"an unknown":   {"cluster": map[string]any{"ghp_abcdefghijklmnopqrstuvwxyz012345": "x"}},
		"a size":       {"nodes": map[string]any{"w-1": map[string]any{"size": token}}},
		"a node":       {"lifecycle": map[string]any{"replace": map[string]any{token: 1}}},
		"a git branch": {"gitops": map[string]any{"git": map[string]any{"commit": "glpat-abcdefghijklmnopqrst"}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := load(t, overlay(t, set))
			require.Error(t, err)
			for _, secret := range []string{token, "Zm9v", "sEcReT", "hunter2", "abcdefghijklmnopqrst"} {
				assert.NotContains(t, err.Error(), secret)
			}
		})
	}
}

// TestMergeKeys holds that a secret behind a merge key is known as exactly as any other.
func TestMergeKeys(t *testing.T) {
	t.Parallel()
	const merged = `x-common: &common {username: me, password: {secure: hush}}
config:
  talos-proxmox:proxmox: {defaultHost: pve1}
  talos-proxmox:cluster: {name: merged}
  talos-proxmox:talos:
    registries:
      docker.io: {<<: *common}
      ghcr.io: {username: you, password: PLAIN}
  talos-proxmox:nodes:
    cp-1: {role: controlplane, vmId: 101, networks: {lan: {address: 10.0.0.11/24}}}
`
	s, err := load(t, replaced(merged, "PLAIN", "{secure: quiet}"))
	require.NoError(t, err)
	assert.Equal(t, []string{"hush", "quiet"}, s.SecureValues)
	_, err = load(t, replaced(merged, "PLAIN", "hunter2"))
	require.EqualError(t, err, "stack test: 1 problem\n  talos.registries[\"ghcr.io\"].password (line 8): must be a secret: run "+
		"`pulumi config set --secret --path 'talos-proxmox:talos.registries[\"ghcr.io\"].password'`")
}

// TestNothingVanishes writes settings where nobody would read them.
func TestNothingVanishes(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ text, want string }{
		"a prefix with a mistake": {
			onBase(t, "  talos-promox:lifecycle: {readyTimeout: 5m}\n"),
			`talos-promox:lifecycle (line 16): is a key of the project "talos-promox", and this project is "talos-proxmox": write talos-proxmox:lifecycle`,
		},
		"another project's prefix": {
			onBase(t, "  homelab:lifecycle: {readyTimeout: 5m}\n"),
			`homelab:lifecycle (line 16): is a key of the project "homelab", and this project is "talos-proxmox": write talos-proxmox:lifecycle`,
		},
		"a default provider": {
			onBase(t, "  proxmoxve:endpoint: https://pve.example.com\n"),
			"proxmoxve:endpoint (line 16): configures a provider that nothing uses: the program registers its own Proxmox provider: write it under talos-proxmox:proxmox",
		},
		"without --path": {
			onBase(t, "  talos-proxmox:lifecycle.readyTimeout: 5m\n"),
			"[\"lifecycle.readyTimeout\"] (line 16): was set without --path, and is one key of that name: run " +
				"`pulumi config rm 'talos-proxmox:lifecycle.readyTimeout'`, then `pulumi config set --path 'talos-proxmox:lifecycle.readyTimeout'` with the value",
		},
		"beside config": {
			onBase(t, "talos-proxmox:lifecycle: {readyTimeout: 5m}\n"),
			"talos-proxmox:lifecycle (line 16): is beside config, where Pulumi does not read it: indent it below config, as talos-proxmox:lifecycle",
		},
		"a block beside config": {
			onBase(t, "lifecycle: {readyTimeout: 5m}\n"),
			"lifecycle (line 16): is beside config, where Pulumi does not read it: indent it below config, as talos-proxmox:lifecycle",
		},
		"a key of Pulumi's with a mistake": {
			onBase(t, "secretprovider: passphrase\n"),
			`secretprovider (line 16): is not a key of a stack file, and Pulumi does not read it: did you mean "secretsprovider"?`,
		},
		"others' keys":       {onBase(t, "  aws:region: x\n  pulumi:tags: {a: b}\nx-anchors: {a: b}\nencryptionsalt: v1:abc\n"), ""},
		"merged where it is": {onBase(t, "  talos-proxmox:lifecycle: {<<: {readyTimeout: 5m}}\n"), ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := load(t, c.text)
			if c.want == "" {
				require.NoError(t, err)

				return
			}
			require.EqualError(t, err, "stack test: 1 problem\n  "+c.want)
		})
	}
}

// TestProjectHasAnyName holds that lines and secrets are known whatever the project is called.
func TestProjectHasAnyName(t *testing.T) {
	t.Parallel()
	text := replaced(secretStack, "talos-proxmox:", "homelab:")
	s := source(t, text)
	s.Project, s.Dir = "homelab", t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(s.Dir, "Pulumi.test.yaml"), []byte(text), 0o600))
	loaded, err := stack.Load(s)
	require.NoError(t, err)
	assert.Equal(t, []string{"hush-one", "hush-two", "root@pam!ci=0123-abcd"}, loaded.SecureValues)
}
