// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package gitops_test

import (
	"flag"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"

	"github.com/talos-proxmox/talos-proxmox/internal/gitops"
	"github.com/talos-proxmox/talos-proxmox/spec"
)

var update = flag.Bool("update", false, "rewrite the golden files; the tests then fail, so that nobody forgets to look")

// sshGit returns a private repository that is read with a deploy key.
func sshGit() spec.Git {
	return spec.Git{
		URL:  spec.Ptr("ssh://git@git.example.com/lab/demo.git"),
		Auth: &spec.GitAuth{Type: spec.Ptr("ssh"), KnownHosts: spec.Ptr("git.example.com ssh-ed25519 AAAA")},
	}
}

// tokenGit returns a repository that is read with a token, at a host with a CA of its own.
func tokenGit() spec.Git {
	return spec.Git{
		URL: spec.Ptr("https://git.example.com:8443/demo"), Path: spec.Ptr("./"), Tag: spec.Ptr("v1"), Prune: spec.Ptr(false),
		Auth: &spec.GitAuth{
			Type: spec.Ptr("token"), Password: spec.Ptr(spec.NewSecret("t0ken")), CA: spec.Ptr(spec.Text("PEM")),
		},
	}
}

// gitHubAppGit returns a repository that is read as a GitHub App.
func gitHubAppGit() spec.Git {
	return spec.Git{URL: spec.Ptr("https://ghe.example.com/lab/demo"), Commit: spec.Ptr("0123abc"), Auth: &spec.GitAuth{
		Type: spec.Ptr("githubApp"), GitHubApp: &spec.GitHubApp{
			ID: "1", InstallationID: "2", PrivateKey: spec.NewSecret("PEM"), BaseURL: spec.Ptr("https://ghe.example.com/api/v3"),
		},
	}}
}

func goldenCases() map[string]spec.GitOps {
	flux, argo := spec.Ptr(gitops.Flux), spec.Ptr(gitops.ArgoCD)

	return map[string]spec.GitOps{
		"flux":               {Provider: flux, Git: sshGit()},
		"flux-no-repository": {Provider: flux},
		"flux-inline":        {Provider: flux, Method: spec.Ptr("inline"), Git: sshGit()},
		"flux-operator": {
			Provider: flux, Method: spec.Ptr("operator"), Git: gitHubAppGit(), Version: spec.Ptr("2.8.x"),
			Components: []string{"source-controller", "kustomize-controller"}, Registry: spec.Ptr("harbor.example.com/fluxcd"),
		},
		"flux-settings": {
			Provider: flux, Git: tokenGit(), Namespace: spec.Ptr("flux"), DestinationNamespace: spec.Ptr("apps"),
			Components: []string{"source-controller"}, Registry: spec.Ptr("harbor.example.com/fluxcd/"),
			SOPS: &spec.SOPS{AgeKey: spec.Ptr(spec.NewSecret("AGE-SECRET-KEY-1"))}, Await: spec.Ptr(spec.Duration(time.Minute)),
			Chart: spec.Chart{Values: spec.Ptr(spec.Text("crds: {annotations: {mine: \"1\"}}\nextra: 1"))},
		},
		"argocd":          {Provider: argo, Git: sshGit()},
		"argocd-dayzero":  {Provider: argo, DayZero: spec.Ptr(true), Git: sshGit()},
		"argocd-app":      {Provider: argo, Git: gitHubAppGit()},
		"argocd-settings": {Provider: argo, Git: tokenGit(), DestinationNamespace: spec.Ptr("apps")},
	}
}

// described returns everything that a controller gets, in a form that people can read and compare.
func described(t *testing.T, given spec.GitOps) map[string]any {
	t.Helper()
	const cluster = "test"
	g := gitops.WithDefaults(cluster, given)
	values, err := gitops.Values(g)
	require.NoError(t, err)
	out := map[string]any{
		"release": gitops.Release(g), "namespace": *g.Namespace, "values": values, "atDayZero": gitops.AtDayZero(g),
		"chart": *g.Chart.Repository + " " + *g.Chart.Name + " " + *g.Chart.Version,
	}
	if credentials, needed := gitops.NewCredentials(cluster, g); needed {
		out["credentials"] = credentials
	}
	var objects []gitops.Object
	switch {
	case gitops.IsOperator(g):
		instance, err := gitops.FluxInstance(g)
		require.NoError(t, err)
		objects = append(objects, instance)
	case g.Git.URL == nil:
	case *g.Provider == gitops.ArgoCD:
		objects = append(objects, gitops.Application(cluster, g))
	default:
		objects = append(objects, gitops.GitRepository(g), gitops.Kustomization(g))
	}
	out["objects"] = objects
	day, err := gitops.DayZero(spec.Config{Cluster: spec.Cluster{Name: spec.Ptr(cluster)}, GitOps: given})
	require.NoError(t, err)
	inline := map[string]string{}
	for name, m := range day.Manifests.Inline {
		inline[name] = string(*m.Inline)
	}
	for name, c := range day.Manifests.Charts {
		inline["values of "+name] = string(*c.Values)
	}
	out["dayZero"] = inline

	return out
}

func TestGolden(t *testing.T) {
	t.Parallel()

	for name, g := range goldenCases() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			got, err := yaml.Marshal(described(t, g))
			require.NoError(t, err)
			path := filepath.Join("testdata", name+".yaml")
			if *update {
				require.NoError(t, os.MkdirAll("testdata", 0o750))
				require.NoError(t, os.WriteFile(path, got, 0o600))
				t.Error("rewritten: look at the difference, then run without -update")
			}
			want, err := os.ReadFile(path)
			require.NoError(t, err)
			assert.Equal(t, string(want), string(got))
		})
	}
}

func TestDayZeroRefusesTakenNames(t *testing.T) {
	t.Parallel()

	cfg := spec.Config{
		Cluster: spec.Cluster{Name: spec.Ptr("test")},
		GitOps:  spec.GitOps{Provider: spec.Ptr(gitops.ArgoCD), DayZero: spec.Ptr(true), Git: sshGit()},
	}
	cfg.Manifests.Inline = map[string]spec.Manifest{"argocd-sync": {}}
	_, err := gitops.DayZero(cfg)
	require.EqualError(t, err, "manifests.inline.argocd-sync: gitops has a manifest of this name at day 0: choose another")

	cfg.Manifests.Charts = map[string]spec.DayZeroChart{"argocd": {}}
	_, err = gitops.DayZero(cfg)
	require.EqualError(t, err, "manifests.charts.argocd: gitops installs a chart of this name at day 0: choose another")
}
