// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package components_test

import (
	"encoding/json"
	"fmt"
	"os/exec"
	"strings"
	"testing"
	"time"

	"filippo.io/age"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/crypto/ssh"

	"github.com/talos-proxmox/talos-proxmox/components"
	"github.com/talos-proxmox/talos-proxmox/internal/gitops"
	"github.com/talos-proxmox/talos-proxmox/internal/pulumitest"
	"github.com/talos-proxmox/talos-proxmox/internal/versions"
	"github.com/talos-proxmox/talos-proxmox/spec"
)

// sshGitOps follows a private repository with a key that is generated.
func sshGitOps() spec.GitOps {
	return spec.GitOps{Git: spec.Git{
		URL:  spec.Ptr("ssh://git@git.example.com/lab/demo.git"),
		Auth: &spec.GitAuth{Type: spec.Ptr("ssh"), KnownHosts: spec.Ptr("git.example.com ssh-ed25519 AAAA")},
	}}
}

// handOver runs the component for a cluster that is another resource.
func handOver(t *testing.T, preview bool, g spec.GitOps) (*made, error) {
	t.Helper()
	m := &made{Recorder: &pulumitest.Recorder{State: talosState(t, preview)}, outputs: map[string]string{}}
	err := m.Run(preview, func(ctx *pulumi.Context) error {
		cluster, err := pulumi.NewStash(ctx, "vm-cluster", &pulumi.StashArgs{Input: pulumi.String("")})
		if err != nil {
			return err
		}
		f, err := components.NewFluxBootstrap(ctx, "flux", &components.FluxBootstrapArgs{
			ClusterName: "test", Kubeconfig: pulumi.String("the kubeconfig"), Cluster: cluster, GitOps: g,
		})
		if err != nil {
			return err
		}
		m.watch("publicKey", f.PublicKey)
		m.watch("ageRecipient", f.AgeRecipient)

		return nil
	})

	return m, err
}

// jsonOf returns a part of a resource's inputs, secrets opened.
func jsonOf(t *testing.T, m *made, name string, key resource.PropertyKey) string {
	t.Helper()
	args, ok := m.Get(name)
	require.True(t, ok, "%s was not registered", name)
	value := args.Inputs[key]
	if value.IsSecret() {
		value = value.SecretValue().Element
	}
	text, err := json.Marshal(value.MapRepl(nil, func(v resource.PropertyValue) (any, bool) {
		if v.IsSecret() {
			return v.SecretValue().Element.StringValue(), true
		}

		return nil, false
	}))
	require.NoError(t, err)

	return string(text)
}

func TestFluxBootstrapByChart(t *testing.T) {
	t.Parallel()

	for _, preview := range []bool{true, false} {
		m, err := handOver(t, preview, sshGitOps())
		require.NoError(t, err)

		release, ok := m.Get("flux-release")
		require.True(t, ok)
		assert.Equal(t, "kubernetes:helm.sh/v3:Release", release.TypeToken)
		assert.Equal(t, "flux2", release.Inputs["chart"].StringValue())
		assert.Equal(t, versions.FluxChart, release.Inputs["version"].StringValue())
		assert.JSONEq(t, fmt.Sprintf(`{"repo":%q}`, gitops.FluxChartRepository), jsonOf(t, m, "flux-release", "repositoryOpts"))
		assert.JSONEq(t, `{
			"url": "ssh://git@git.example.com/lab/demo.git", "interval": "1m0s", "ref": {"branch": "main"},
			"secretRef": {"name": "flux-system"}
		}`, jsonOf(t, m, "flux-repository", "spec"))
		assert.JSONEq(t, `{
			"interval": "10m0s", "path": "./clusters/test", "prune": true, "wait": true, "timeout": "5m0s",
			"deletionPolicy": "Orphan", "sourceRef": {"kind": "GitRepository", "name": "flux-system"}
		}`, jsonOf(t, m, "flux-kustomization", "spec"))
		for _, name := range []string{"flux-repository", "flux-kustomization"} {
			assert.Contains(t, m.Register(name).GetDependencies(), kubernetesURN("kubernetes:helm.sh/v3:Release", "flux-release"))
		}
	}
}

func kubernetesURN(kind, name string) string {
	return "urn:pulumi:stack::project::" + components.FluxBootstrapType + "$" + kind + "::" + name
}

func TestFluxBootstrapGoesWithItsCluster(t *testing.T) {
	t.Parallel()

	m, err := handOver(t, false, sshGitOps())
	require.NoError(t, err)

	assert.Equal(t, urn("pulumi:index:Stash", "vm-cluster"), m.Register("flux").GetDeletedWith())
	provider, ok := m.Get("flux-kubernetes")
	require.True(t, ok)
	assert.Equal(t, "test", provider.Inputs["clusterIdentifier"].StringValue(), "another kubeconfig replaces nothing")
	assert.True(t, provider.Inputs["kubeconfig"].IsSecret())
	assert.Equal(t, components.KubernetesProviderVersion, m.Register("flux-kubernetes").GetVersion())
	for _, name := range []string{"flux-namespace", "flux-git", "flux-release", "flux-repository", "flux-kustomization"} {
		assert.Contains(t, m.Register(name).GetProvider(), "::flux-kubernetes::", name)
		assert.Equal(t, components.KubernetesProviderVersion, m.Register(name).GetVersion(), name)
	}
}

func TestFluxBootstrapDeployKey(t *testing.T) {
	t.Parallel()

	m, err := handOver(t, false, sshGitOps())
	require.NoError(t, err)

	key, ok := m.Get("flux-key")
	require.True(t, ok)
	assert.True(t, key.Inputs["input"].IsSecret(), "the private half is in it")
	assert.Equal(t, []string{"input"}, m.Register("flux-key").GetIgnoreChanges(), "generated once")

	secret, _ := m.Get("flux-git")
	assert.True(t, secret.Inputs["stringData"].IsSecret())
	var data map[string]string
	require.NoError(t, json.Unmarshal([]byte(jsonOf(t, m, "flux-git", "stringData")), &data))
	assert.Equal(t, "git.example.com ssh-ed25519 AAAA", data["known_hosts"])
	assert.Equal(t, data["identity.pub"], m.outputs["publicKey"])
	signer, err := ssh.ParsePrivateKey([]byte(data["identity"]))
	require.NoError(t, err)
	assert.Equal(t, "ssh-ed25519", signer.PublicKey().Type())
	public, _, _, _, err := ssh.ParseAuthorizedKey([]byte(m.outputs["publicKey"]))
	require.NoError(t, err)
	assert.Equal(t, signer.PublicKey().Marshal(), public.Marshal(), "the two halves belong together")
}

func TestFluxBootstrapCredentials(t *testing.T) {
	t.Parallel()

	for name, test := range map[string]struct {
		auth spec.GitAuth
		want string
	}{
		"token": {
			spec.GitAuth{Type: spec.Ptr("token"), Password: spec.Ptr(spec.NewSecret("t0ken")), CA: spec.Ptr(spec.Text("PEM"))},
			`{"username": "git", "password": "t0ken", "ca.crt": "PEM"}`,
		},
		"GitHub App": {
			spec.GitAuth{Type: spec.Ptr("githubApp"), GitHubApp: &spec.GitHubApp{
				ID: "1", InstallationID: "2", PrivateKey: spec.NewSecret("PEM"),
			}},
			`{"githubAppID": "1", "githubAppInstallationID": "2", "githubAppPrivateKey": "PEM"}`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			m, err := handOver(t, false, spec.GitOps{Git: spec.Git{URL: spec.Ptr("https://git.example.com/demo"), Auth: &test.auth}})
			require.NoError(t, err)

			assert.JSONEq(t, test.want, jsonOf(t, m, "flux-git", "stringData"))
			assert.Empty(t, m.outputs["publicKey"])
			_, ok := m.Get("flux-key")
			assert.False(t, ok)
		})
	}
}

func TestFluxBootstrapDecryptsWithAnAgeKey(t *testing.T) {
	t.Parallel()

	g := sshGitOps()
	g.SOPS = &spec.SOPS{}
	m, err := handOver(t, false, g)
	require.NoError(t, err)

	var data map[string]string
	require.NoError(t, json.Unmarshal([]byte(jsonOf(t, m, "flux-sops", "stringData")), &data))
	identity, err := age.ParseX25519Identity(data["identity.agekey"])
	require.NoError(t, err)
	assert.Equal(t, identity.Recipient().String(), m.outputs["ageRecipient"])
	assert.Contains(t, jsonOf(t, m, "flux-kustomization", "spec"),
		`"decryption":{"provider":"sops","secretRef":{"name":"sops-age"}}`)
	sops := kubernetesURN("kubernetes:core/v1:Secret", "flux-sops")
	assert.Contains(t, m.Register("flux-release").GetDependencies(), sops, "the key is there before Flux looks for it")
}

func TestFluxBootstrapByOperator(t *testing.T) {
	t.Parallel()

	g := sshGitOps()
	g.Method, g.Components = spec.Ptr("operator"), []string{"source-controller", "kustomize-controller"}
	m, err := handOver(t, false, g)
	require.NoError(t, err)

	release, _ := m.Get("flux-release")
	assert.Equal(t, gitops.FluxOperatorRepository+"/flux-operator", release.Inputs["chart"].StringValue())
	assert.Equal(t, versions.FluxOperator, release.Inputs["version"].StringValue())
	instance := jsonOf(t, m, "flux-instance", "spec")
	var s struct {
		Distribution, Sync map[string]any
		Components         []string
		Kustomize          struct{ Patches []struct{ Patch string } }
	}
	require.NoError(t, json.Unmarshal([]byte(instance), &s))
	assert.Equal(t, map[string]any{"version": "2.x", "registry": "ghcr.io/fluxcd"}, s.Distribution)
	assert.Equal(t, map[string]any{
		"kind": "GitRepository", "url": "ssh://git@git.example.com/lab/demo.git", "path": "./clusters/test",
		"interval": "1m0s", "ref": "refs/heads/main", "pullSecret": "flux-system",
	}, s.Sync)
	assert.Equal(t, g.Components, s.Components)
	require.Len(t, s.Kustomize.Patches, 2)
	assert.Contains(t, s.Kustomize.Patches[1].Patch, `{"op":"add","path":"/spec/deletionPolicy","value":"Orphan"}`)
	assert.Contains(t, m.Register("flux-instance").GetDependencies(),
		kubernetesURN("kubernetes:helm.sh/v3:Release", "flux-release"), "on removal the instance goes first")
}

func TestFluxBootstrapChartSettings(t *testing.T) {
	t.Parallel()

	g := sshGitOps()
	g.Components, g.Registry = []string{"source-controller"}, spec.Ptr("harbor.example.com/flux/")
	g.Chart.Values = spec.Ptr(spec.Text("sourceController: {tag: v9}\nextra: 1"))
	m, err := handOver(t, false, g)
	require.NoError(t, err)

	var values map[string]any
	require.NoError(t, json.Unmarshal([]byte(jsonOf(t, m, "flux-release", "values")), &values))
	assert.Equal(t, map[string]any{"create": true, "image": "harbor.example.com/flux/source-controller", "tag": "v9"},
		values["sourceController"])
	assert.Equal(t, map[string]any{"create": false, "image": "harbor.example.com/flux/helm-controller"}, values["helmController"])
	assert.InDelta(t, 1, values["extra"], 0)
}

func TestFluxBootstrapRefuses(t *testing.T) {
	t.Parallel()

	g := sshGitOps()
	g.Git.Auth.KnownHosts, g.Chart.Digest = nil, spec.Ptr("sha256:00")

	_, err := handOver(t, true, g)

	assert.ErrorContains(t, err, "GitOps flux: 2 problems\n"+
		"  chart.digest: cannot be checked for a chart that the Kubernetes provider fetches: give Charts, or leave it out\n"+
		"  git.auth.knownHosts: is required for ssh: the output of `ssh-keyscan` that you have checked")
}

func TestFluxDayZero(t *testing.T) {
	t.Parallel()

	cfg := clusterConfig(1, 0)
	cfg.GitOps = sshGitOps()
	cfg.GitOps.Provider, cfg.GitOps.Method = spec.Ptr("flux"), spec.Ptr("inline")
	with, err := components.AddGitOpsDayZero(cfg.WithDefaults())
	require.NoError(t, err)

	assert.Equal(t, "flux2", *with.Manifests.Charts["flux2"].Name)
	assert.Greater(t, *with.Manifests.Inline["flux-sync"].Order, *with.Manifests.Charts["flux2"].Order)
	objects := string(*with.Manifests.Inline["flux-sync"].Inline)
	assert.Contains(t, objects, "kind: GitRepository")
	assert.Contains(t, objects, "path: ./clusters/test")
	assert.Empty(t, cfg.Manifests.Inline, "the argument stays as it is")

	m, err := handOver(t, false, cfg.GitOps)
	require.NoError(t, err)
	assert.Equal(t, []string{"flux-git"}, m.Names("kubernetes:core/v1:Secret"))
	assert.Empty(t, m.Names("kubernetes:helm.sh/v3:Release"), "Talos has installed it")
}

func TestComponentsImportOnlyLightPartsOfTheKubernetesSDK(t *testing.T) {
	t.Parallel()

	out, err := exec.CommandContext(t.Context(), "go", "list", "-deps", ".").Output()
	require.NoError(t, err)
	const sdk = "github.com/pulumi/pulumi-kubernetes/sdk/v4/go/kubernetes"
	for _, heavy := range []string{"/core/v1", "/helm/v3", "/yaml/v2", "/apps/v1"} {
		assert.NotContains(t, strings.Split(string(out), "\n"), sdk+heavy, "it would take minutes to compile")
	}
}

func TestFluxBootstrapLeavesWhatStandsForWorkloads(t *testing.T) {
	t.Parallel()

	m, err := handOver(t, false, sshGitOps())
	require.NoError(t, err)
	for _, name := range []string{"flux-namespace", "flux-repository", "flux-kustomization"} {
		assert.True(t, m.Register(name).GetRetainOnDelete(), "%s stays when Flux goes: with it would go what it stands for", name)
	}
	assert.False(t, m.Register("flux-git").GetRetainOnDelete(), "the credentials go")
	assert.True(t, m.Register("flux-release").GetDeleteBeforeReplace(), "two charts have objects of the same names")
	assert.Contains(t, jsonOf(t, m, "flux-release", "values"), `"crds":{"annotations":{"helm.sh/resource-policy":"keep"}}`)
}

func TestFluxBootstrapAwaitsOnlyWhenAsked(t *testing.T) {
	t.Parallel()

	m, err := handOver(t, true, sshGitOps())
	require.NoError(t, err)
	_, ok := m.Get("flux-applied")
	assert.False(t, ok)

	for _, method := range []string{"chart", "operator", "inline"} {
		g := sshGitOps()
		g.Method, g.Await = &method, spec.Ptr(spec.Duration(time.Minute))
		m, err = handOver(t, true, g)
		require.NoError(t, err)
		_, ok = m.Get("flux-applied")
		assert.True(t, ok, method)
		hooks := m.Register("flux-applied").GetHooks()
		assert.Len(t, hooks.GetBeforeCreate(), 1)
		assert.Len(t, hooks.GetBeforeUpdate(), 1)
	}
}
