// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package components_test

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/crypto/ssh"
	"sigs.k8s.io/yaml"

	"github.com/talos-proxmox/talos-proxmox/components"
	"github.com/talos-proxmox/talos-proxmox/internal/check"
	"github.com/talos-proxmox/talos-proxmox/internal/gitops"
	"github.com/talos-proxmox/talos-proxmox/internal/pulumitest"
	"github.com/talos-proxmox/talos-proxmox/internal/rules"
	"github.com/talos-proxmox/talos-proxmox/internal/versions"
	"github.com/talos-proxmox/talos-proxmox/spec"
)

// handToArgo runs the component for a cluster that is another resource.
func handToArgo(t *testing.T, preview bool, g spec.GitOps) (*made, error) {
	t.Helper()
	m := &made{Recorder: &pulumitest.Recorder{State: talosState(t, preview)}, outputs: map[string]string{}}
	err := m.Run(preview, func(ctx *pulumi.Context) error {
		cluster, err := pulumi.NewStash(ctx, "vm-cluster", &pulumi.StashArgs{Input: pulumi.String("")})
		if err != nil {
			return err
		}
		a, err := components.NewArgoBootstrap(ctx, "argo", &components.ArgoBootstrapArgs{
			ClusterName: "test", Kubeconfig: pulumi.String("the kubeconfig"), Cluster: cluster, GitOps: g,
		})
		if err != nil {
			return err
		}
		m.watch("publicKey", a.PublicKey)

		return nil
	})

	return m, err
}

func argoURN(kind, name string) string {
	return "urn:pulumi:stack::project::" + components.ArgoBootstrapType + "$" + kind + "::" + name
}

func TestArgoBootstrapByChart(t *testing.T) {
	t.Parallel()

	for _, preview := range []bool{true, false} {
		m, err := handToArgo(t, preview, sshGitOps())
		require.NoError(t, err)

		release, ok := m.Get("argo-release")
		require.True(t, ok)
		assert.Equal(t, "kubernetes:helm.sh/v3:Release", release.TypeToken)
		assert.Equal(t, "argo-cd", release.Inputs["chart"].StringValue())
		assert.Equal(t, versions.ArgoChart, release.Inputs["version"].StringValue())
		assert.Equal(t, "argocd", release.Inputs["name"].StringValue())
		assert.Equal(t, "argocd", release.Inputs["namespace"].StringValue())
		assert.JSONEq(t, fmt.Sprintf(`{"repo":%q}`, gitops.ArgoChartRepository), jsonOf(t, m, "argo-release", "repositoryOpts"))
		assert.JSONEq(t, `{"configs": {
			"cm": {"timeout.reconciliation": "60s", "timeout.reconciliation.jitter": "0s"},
			"ssh": {"knownHosts": "git.example.com ssh-ed25519 AAAA\n"}
		}}`, jsonOf(t, m, "argo-release", "values"))
		application, ok := m.Get("argo-application")
		require.True(t, ok)
		assert.Equal(t, "kubernetes:argoproj.io/v1alpha1:Application", application.TypeToken)
		assert.JSONEq(t, `{"name": "test", "namespace": "argocd"}`, jsonOf(t, m, "argo-application", "metadata"),
			"without a finalizer, so that what it applied outlives it")
		assert.JSONEq(t, `{
			"project": "default",
			"source": {"repoURL": "ssh://git@git.example.com/lab/demo.git", "targetRevision": "main", "path": "clusters/test"},
			"destination": {"server": "https://kubernetes.default.svc", "namespace": "default"},
			"syncPolicy": {"automated": {"prune": true, "selfHeal": true}}
		}`, jsonOf(t, m, "argo-application", "spec"))
		assert.Contains(t, m.Register("argo-application").GetDependencies(), argoURN("kubernetes:helm.sh/v3:Release", "argo-release"))
		assert.Contains(t, m.Register("argo-release").GetDependencies(), argoURN("kubernetes:core/v1:Secret", "argo-git"),
			"the credentials are there before Argo CD looks for them")
	}
}

func TestArgoBootstrapGoesWithItsCluster(t *testing.T) {
	t.Parallel()

	m, err := handToArgo(t, false, sshGitOps())
	require.NoError(t, err)

	assert.Equal(t, urn("pulumi:index:Stash", "vm-cluster"), m.Register("argo").GetDeletedWith())
	provider, ok := m.Get("argo-kubernetes")
	require.True(t, ok)
	assert.True(t, provider.Inputs["kubeconfig"].IsSecret())
	for _, name := range []string{"argo-namespace", "argo-git", "argo-release", "argo-application"} {
		assert.Contains(t, m.Register(name).GetProvider(), "::argo-kubernetes::", name)
		assert.Equal(t, components.KubernetesProviderVersion, m.Register(name).GetVersion(), name)
	}
}

func TestArgoBootstrapDeployKey(t *testing.T) {
	t.Parallel()

	m, err := handToArgo(t, false, sshGitOps())
	require.NoError(t, err)

	assert.Equal(t, []string{"input"}, m.Register("argo-key").GetIgnoreChanges(), "generated once")
	secret, _ := m.Get("argo-git")
	assert.True(t, secret.Inputs["stringData"].IsSecret())
	assert.JSONEq(t, `{"name": "test-repository", "namespace": "argocd",
		"labels": {"argocd.argoproj.io/secret-type": "repository"}}`, jsonOf(t, m, "argo-git", "metadata"))
	var data map[string]string
	require.NoError(t, json.Unmarshal([]byte(jsonOf(t, m, "argo-git", "stringData")), &data))
	signer, err := ssh.ParsePrivateKey([]byte(data["sshPrivateKey"]))
	require.NoError(t, err)
	public, _, _, _, err := ssh.ParseAuthorizedKey([]byte(m.outputs["publicKey"]))
	require.NoError(t, err)
	assert.Equal(t, signer.PublicKey().Marshal(), public.Marshal(), "the two halves belong together")
	delete(data, "sshPrivateKey")
	assert.Equal(t, map[string]string{"type": "git", "url": "ssh://git@git.example.com/lab/demo.git"}, data)
}

func TestArgoBootstrapCredentials(t *testing.T) {
	t.Parallel()

	for name, test := range map[string]struct {
		auth      spec.GitAuth
		want, tls string
	}{
		"a token, and a CA of the host": {
			spec.GitAuth{Type: spec.Ptr("token"), Password: spec.Ptr(spec.NewSecret("t0ken")), CA: spec.Ptr(spec.Text("PEM"))},
			`{"type": "git", "url": "https://git.example.com:8443/demo", "username": "git", "password": "t0ken"}`,
			`"tls":{"certificates":{"git.example.com":"PEM"}}`,
		},
		"a name and a password": {
			spec.GitAuth{Type: spec.Ptr("basic"), Username: spec.Ptr("me"), Password: spec.Ptr(spec.NewSecret("pass"))},
			`{"type": "git", "url": "https://git.example.com:8443/demo", "username": "me", "password": "pass"}`, "",
		},
		"a GitHub App": {
			spec.GitAuth{Type: spec.Ptr("githubApp"), GitHubApp: &spec.GitHubApp{
				ID: "1", InstallationID: "2", PrivateKey: spec.NewSecret("PEM"), BaseURL: spec.Ptr("https://ghe.example.com/api/v3"),
			}},
			`{"type": "git", "url": "https://git.example.com:8443/demo", "githubAppID": "1", "githubAppInstallationID": "2",
				"githubAppPrivateKey": "PEM", "githubAppEnterpriseBaseUrl": "https://ghe.example.com/api/v3"}`, "",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			m, err := handToArgo(t, false, spec.GitOps{Git: spec.Git{URL: spec.Ptr("https://git.example.com:8443/demo"), Auth: &test.auth}})
			require.NoError(t, err)

			assert.JSONEq(t, test.want, jsonOf(t, m, "argo-git", "stringData"))
			assert.Contains(t, jsonOf(t, m, "argo-release", "values"), test.tls)
			assert.Empty(t, m.outputs["publicKey"])
		})
	}
}

func TestArgoBootstrapPublicRepositoryNeedsNoSecret(t *testing.T) {
	t.Parallel()

	m, err := handToArgo(t, false, spec.GitOps{Git: spec.Git{URL: spec.Ptr("https://git.example.com/demo")}})
	require.NoError(t, err)

	assert.Empty(t, m.Names("kubernetes:core/v1:Secret"))
}

func TestArgoBootstrapSettings(t *testing.T) {
	t.Parallel()

	g := spec.GitOps{
		Namespace: spec.Ptr("argo"), DestinationNamespace: spec.Ptr("apps"),
		Chart: spec.Chart{
			Version: spec.Ptr("8.2.5"), Repository: spec.Ptr("oci://harbor.example.com/charts"),
			Values: spec.Ptr(spec.Text("configs: {cm: {timeout.reconciliation: 5s}}\nextra: 1")),
		},
		Git: spec.Git{URL: spec.Ptr("https://git.example.com/demo"), Path: spec.Ptr("./"), Prune: spec.Ptr(false)},
	}
	for _, test := range []struct {
		git  func(*spec.Git)
		want string
	}{
		{func(r *spec.Git) { r.Branch = spec.Ptr("next") }, "next"},
		{func(r *spec.Git) { r.Tag = spec.Ptr("v1") }, "v1"},
		{func(r *spec.Git) { r.Semver = spec.Ptr(">=1.2.0 <2.0.0") }, ">=1.2.0 <2.0.0"},
		{func(r *spec.Git) { r.Commit = spec.Ptr("0123abc") }, "0123abc"},
	} {
		own := g
		test.git(&own.Git)
		m, err := handToArgo(t, false, own)
		require.NoError(t, err)

		release, _ := m.Get("argo-release")
		assert.Equal(t, "oci://harbor.example.com/charts/argo-cd", release.Inputs["chart"].StringValue())
		assert.Equal(t, "8.2.5", release.Inputs["version"].StringValue())
		assert.Equal(t, "argo", release.Inputs["namespace"].StringValue())
		assert.JSONEq(t, `{"extra": 1, "configs": {"cm": {"timeout.reconciliation": "5s", "timeout.reconciliation.jitter": "0s"}}}`,
			jsonOf(t, m, "argo-release", "values"))
		assert.JSONEq(t, fmt.Sprintf(`{
			"project": "default",
			"source": {"repoURL": "https://git.example.com/demo", "targetRevision": %s, "path": "."},
			"destination": {"server": "https://kubernetes.default.svc", "namespace": "apps"},
			"syncPolicy": {"automated": {"prune": false, "selfHeal": true}, "syncOptions": ["CreateNamespace=true"]}
		}`, asJSON(t, test.want)), jsonOf(t, m, "argo-application", "spec"))
	}
}

func asJSON(t *testing.T, v any) string {
	t.Helper()
	text, err := json.Marshal(v)
	require.NoError(t, err)

	return string(text)
}

func TestArgoBootstrapRefuses(t *testing.T) {
	t.Parallel()

	g := sshGitOps()
	g.Git.Auth.KnownHosts, g.Chart.Digest = nil, spec.Ptr("sha256:00")
	_, err := handToArgo(t, true, g)
	assert.ErrorContains(t, err, "GitOps argo: 2 problems\n"+
		"  chart.digest: cannot be checked for a chart that the Kubernetes provider fetches: give Charts, or leave it out\n"+
		"  git.auth.knownHosts: is required for ssh: the output of `ssh-keyscan` that you have checked")

	g = sshGitOps()
	g.SOPS, g.Git.Wait = &spec.SOPS{}, spec.Ptr(true)
	_, err = handToArgo(t, true, g)
	assert.ErrorContains(t, err, "GitOps argo: 2 problems\n"+
		"  git.wait: is a setting of Flux; Argo CD always watches the health of what it applied: remove it\n"+
		"  sops: works with Flux, and the provider is argocd: remove it")
}

func TestArgoDayZero(t *testing.T) {
	t.Parallel()

	cfg := clusterConfig(1, 0)
	cfg.GitOps = sshGitOps()
	cfg.GitOps.Provider, cfg.GitOps.DayZero = spec.Ptr("argocd"), spec.Ptr(true)
	with, err := components.AddGitOpsDayZero(cfg.WithDefaults())
	require.NoError(t, err)

	chart := with.Manifests.Charts["argocd"]
	assert.Equal(t, "argo-cd", *chart.Name)
	assert.Equal(t, versions.ArgoChart, *chart.Version)
	assert.Equal(t, "argocd", *chart.Namespace)
	assert.Contains(t, string(*chart.Values), "knownHosts: |\n      git.example.com ssh-ed25519 AAAA\n")
	sync := with.Manifests.Inline["argocd-sync"]
	assert.Greater(t, *sync.Order, *chart.Order)
	var application map[string]any
	require.NoError(t, yaml.Unmarshal([]byte(*sync.Inline), &application))
	assert.Equal(t, "Application", application["kind"])
	assert.Equal(t, map[string]any{"name": "test", "namespace": "argocd"}, application["metadata"])
	later := cfg.GitOps
	later.DayZero = nil
	m, err := handToArgo(t, false, later)
	require.NoError(t, err)
	assert.JSONEq(t, jsonOf(t, m, "argo-application", "spec"), asJSON(t, application["spec"]), "as when it comes later")
	assert.Empty(t, cfg.Manifests.Inline, "the argument stays as it is")

	m, err = handToArgo(t, false, cfg.GitOps)
	require.NoError(t, err)
	assert.Equal(t, []string{"argo-git"}, m.Names("kubernetes:core/v1:Secret"))
	assert.Empty(t, m.Names("kubernetes:helm.sh/v3:Release"), "Talos has installed it")
	assert.Empty(t, m.Names("kubernetes:core/v1:Namespace"))
	assert.Empty(t, m.Names("kubernetes:argoproj.io/v1alpha1:Application"))
	assert.NotEmpty(t, m.outputs["publicKey"])
}

// A configuration with its defaults is checked again by the cluster's component.
func TestDefaultsOfFluxAreNoSettingsOfArgo(t *testing.T) {
	t.Parallel()

	cfg := clusterConfig(1, 0)
	cfg.GitOps = spec.GitOps{
		Provider: spec.Ptr("argocd"), Chart: spec.Chart{Version: spec.Ptr("8.2.5")},
		Git: spec.Git{URL: spec.Ptr("https://git.example.com/demo")},
	}
	var problems check.List
	rules.Check(cfg.WithDefaults(), &problems)

	assert.NoError(t, problems.Err("cluster"))
}
