// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package charts_test

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"
	"helm.sh/helm/v3/pkg/registry"
	"helm.sh/helm/v3/pkg/repo"
	"sigs.k8s.io/yaml"

	"github.com/talos-proxmox/talos-proxmox/lab/charts"
)

// sources returns modules in miniature.
func sources(t *testing.T) charts.Sources {
	t.Helper()

	write := func(path, content string) {
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, []byte(content), 0o600))
	}
	cilium, flux := t.TempDir(), t.TempDir()
	write(filepath.Join(cilium, "install/kubernetes/cilium/Chart.yaml"), "apiVersion: v2\nname: cilium\nversion: 1.18.4\n")
	write(filepath.Join(cilium, "install/kubernetes/cilium/templates/a.yaml"), "kind: A\n")
	write(filepath.Join(flux, "config/crd/bases/gitrepositories.yaml"), "kind: CustomResourceDefinition\nexample: '{{ not a template }}'\n")

	gateway := t.TempDir()
	write(filepath.Join(gateway, "config/crd/standard/gateways.yaml"), "kind: CustomResourceDefinition\n")

	return charts.Sources{Cilium: []string{cilium}, Flux: []string{flux}, Gateway: map[string]string{"v1.2.0": gateway}}
}

func TestPackGivesRepositoriesThatHelmReads(t *testing.T) {
	t.Parallel()

	dir, again, from := t.TempDir(), t.TempDir(), sources(t)
	require.NoError(t, charts.Pack(dir, from))
	require.NoError(t, charts.Pack(again, from))

	for _, c := range []struct{ location, name, version string }{
		{charts.CiliumRepository, "cilium", "1.18.4"},
		{charts.FluxRepository, "flux2", charts.FluxVersion},
	} {
		index, err := repo.LoadIndexFile(filepath.Join(dir, c.location, "index.yaml"))
		require.NoError(t, err)
		found, err := index.Get(c.name, c.version)
		require.NoError(t, err)
		file := c.name + "-" + c.version + ".tgz"
		assert.Equal(t, []string{"https://" + c.location + "/" + file}, found.URLs)

		one, err := os.ReadFile(filepath.Join(dir, c.location, file))
		require.NoError(t, err)
		two, err := os.ReadFile(filepath.Join(again, c.location, file))
		require.NoError(t, err)
		assert.Equal(t, one, two, "packing twice gives the same bytes")
	}
}

func TestFluxStandInRendersAndSaysWhatItIs(t *testing.T) {
	t.Parallel()

	dir := t.TempDir()
	require.NoError(t, charts.Pack(dir, sources(t)))
	chart, err := loader.Load(filepath.Join(dir, charts.FluxRepository, "flux2-"+charts.FluxVersion+".tgz"))
	require.NoError(t, err)
	assert.Equal(t, "true", chart.Metadata.Annotations[charts.StandIn])
	assert.Contains(t, chart.Metadata.Description, "STAND-IN")

	values, err := chartutil.ToRenderValues(chart, map[string]any{
		"helmController": map[string]any{"create": false},
	}, chartutil.ReleaseOptions{Name: "flux", Namespace: "flux-system"}, nil)
	require.NoError(t, err)
	rendered, err := engine.Render(chart, values)
	require.NoError(t, err)

	assert.Contains(t, rendered["flux2/templates/crds.yaml"], "example: '{{ not a template }}'")
	assert.Contains(t, rendered["flux2/templates/controllers.yaml"], "name: source-controller")
	assert.NotContains(t, rendered["flux2/templates/controllers.yaml"], "image: ghcr.io/fluxcd/helm-controller")
}

func TestHandlerServesByHostAndThroughMirrors(t *testing.T) {
	t.Parallel()

	dir := t.TempDir()
	require.NoError(t, charts.Pack(dir, sources(t)))
	hosts, err := charts.Hosts(dir)
	require.NoError(t, err)
	assert.Equal(t, []string{
		"argoproj.github.io", "charts.jetstack.io", "fluxcd-community.github.io", "helm.cilium.io",
		"raw.githubusercontent.com", "traefik.github.io",
	}, hosts)

	for name, c := range map[string]struct {
		url  string
		want int
	}{
		"the index":          {"https://helm.cilium.io/index.yaml", http.StatusOK},
		"with a port":        {"https://helm.cilium.io:443/cilium-1.18.4.tgz", http.StatusOK},
		"below a path":       {"https://fluxcd-community.github.io/helm-charts/index.yaml", http.StatusOK},
		"through a mirror":   {"https://proxy.example.com/helm.cilium.io/index.yaml", http.StatusOK},
		"the Gateway API":    {"https://raw.githubusercontent.com/kubernetes-sigs/gateway-api/v1.2.0/config/crd/standard/gateways.yaml", http.StatusOK},
		"a version it lacks": {"https://helm.cilium.io/cilium-1.0.0.tgz", http.StatusNotFound},
		"outside of it":      {"https://helm.cilium.io/../../etc/passwd", http.StatusNotFound},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			w := httptest.NewRecorder()
			charts.Handler(dir).ServeHTTP(w, httptest.NewRequest(http.MethodGet, c.url, nil))
			assert.Equal(t, c.want, w.Code)
		})
	}
}

func TestHostsSaysWhatToDoWhenNothingIsPacked(t *testing.T) {
	t.Parallel()

	_, err := charts.Hosts(filepath.Join(t.TempDir(), "charts"))
	assert.ErrorContains(t, err, "run `make tools`")
}

func TestEveryStandInRendersAndSaysWhatItIs(t *testing.T) {
	t.Parallel()

	dir := t.TempDir()
	require.NoError(t, charts.Pack(dir, sources(t)))
	for file, want := range map[string][]string{
		"argoproj.github.io/argo-helm/argo-cd-8.2.5.tgz":                    {"name: applications.argoproj.io", "name: argocd-application-controller", `"a":"b"`},
		"argoproj.github.io/argo-helm/argo-cd-10.1.1.tgz":                   {"image: quay.io/argoproj/argocd:v3.4.0"},
		"charts.jetstack.io/cert-manager-v1.18.2.tgz":                       {"name: argocd-webhook"},
		"traefik.github.io/charts/traefik-37.0.0.tgz":                       {"type: LoadBalancer", "kind: IngressClass"},
		"oci/ghcr.io/controlplaneio-fluxcd/charts/flux-operator-0.58.1.tgz": {"name: fluxinstances.fluxcd.controlplane.io", "flux-operator:v0.58.1"},
	} {
		chart, err := loader.Load(filepath.Join(dir, file))
		require.NoError(t, err, file)
		assert.Equal(t, "true", chart.Metadata.Annotations[charts.StandIn], file)
		values, err := chartutil.ToRenderValues(chart, map[string]any{"configs": map[string]any{"cm": map[string]any{"a": "b"}}},
			chartutil.ReleaseOptions{Name: "argocd", Namespace: "one"}, nil)
		require.NoError(t, err, file)
		rendered, err := engine.Render(chart, values)
		require.NoError(t, err, file)
		all := ""
		for _, text := range rendered {
			for document := range strings.SplitSeq(text, "\n---") {
				require.NoError(t, yaml.Unmarshal([]byte(document), &map[string]any{}), document)
			}
			all += text
		}
		for _, w := range want {
			assert.Contains(t, all, w, file)
		}
	}
}

func TestARegistryServesChartsToHelm(t *testing.T) {
	t.Parallel()

	dir := t.TempDir()
	require.NoError(t, charts.Pack(dir, sources(t)))
	assert.True(t, charts.ServesOCI(dir)("/v2/controlplaneio-fluxcd/charts/flux-operator/manifests/0.58.1"))
	assert.False(t, charts.ServesOCI(dir)("/v2/siderolabs/installer/manifests/v1.12.4"))

	server := httptest.NewServer(charts.RegistryHandler(dir))
	t.Cleanup(server.Close)
	client, err := registry.NewClient(registry.ClientOptPlainHTTP())
	require.NoError(t, err)
	at := strings.TrimPrefix(server.URL, "http://") + "/controlplaneio-fluxcd/charts/flux-operator:"
	pulled, err := client.Pull(at + "0.58.1")
	require.NoError(t, err)
	assert.Equal(t, "flux-operator", pulled.Chart.Meta.Name)
	_, err = client.Pull(at + "9.9.9")
	require.Error(t, err)
}

func TestFindGivesWhatTheRepositoryHas(t *testing.T) {
	t.Parallel()

	dir := t.TempDir()
	require.NoError(t, charts.Pack(dir, sources(t)))
	for name, c := range map[string]struct{ repository, chart, version, want string }{
		"a repository":       {"https://helm.cilium.io", "cilium", "1.18.4", ""},
		"below a path":       {"https://fluxcd-community.github.io/helm-charts/", "flux2", charts.FluxVersion, ""},
		"through a mirror":   {"https://proxy.example.com/helm.cilium.io", "cilium", "1.18.4", ""},
		"a registry":         {"oci://ghcr.io/controlplaneio-fluxcd/charts", "flux-operator", "0.58.1", ""},
		"a version it lacks": {"https://helm.cilium.io", "cilium", "9.9.9", `chart "cilium" version "9.9.9" not found in https://helm.cilium.io repository`},
		"a registry's too":   {"oci://ghcr.io/controlplaneio-fluxcd/charts", "flux-operator", "9.9.9", "ghcr.io/controlplaneio-fluxcd/charts/flux-operator:9.9.9: not found"},
		"no URL":             {"charts", "cilium", "1.18.4", "could not find protocol handler for: charts"},
	} {
		archive, err := charts.Find(dir, c.repository, c.chart, c.version)
		if c.want != "" {
			assert.EqualError(t, err, c.want, name)

			continue
		}
		require.NoError(t, err, name)
		assert.NotEmpty(t, archive, name)
	}
}
