// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package manifests_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"

	"github.com/talos-proxmox/talos-proxmox/internal/manifests"
	"github.com/talos-proxmox/talos-proxmox/spec"
)

// archive packs a chart.
func archive(t *testing.T) []byte {
	t.Helper()
	dir := t.TempDir()
	writeChart(t, dir, "greeter", greeter)
	loaded, err := loader.LoadDir(dir + "/greeter")
	require.NoError(t, err)
	path, err := chartutil.Save(loaded, t.TempDir())
	require.NoError(t, err)
	raw, err := os.ReadFile(path)
	require.NoError(t, err)

	return raw
}

// digest returns "sha256:…".
func digest(raw []byte) string {
	sum := sha256.Sum256(raw)

	return "sha256:" + hex.EncodeToString(sum[:])
}

// repository serves the archive over HTTP, as Helm does, to who knows the password.
func repository(t *testing.T, raw []byte) *httptest.Server {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if user, password, ok := r.BasicAuth(); !ok || user != "robot" || password != "hunter2" {
			http.Error(w, "who are you", http.StatusUnauthorized)

			return
		}
		switch r.URL.Path {
		case "/charts/index.yaml":
			fmt.Fprint(w, "apiVersion: v1\nentries:\n  greeter:\n  - name: greeter\n    version: 1.2.3\n    urls: [greeter-1.2.3.tgz]\n")
		case "/charts/greeter-1.2.3.tgz":
			_, _ = w.Write(raw)
		default:
			http.NotFound(w, r)
		}
	}))
	t.Cleanup(server.Close)

	return server
}

func greeterOf(repository string) spec.Chart {
	return spec.Chart{
		Repository: spec.Ptr(repository), Name: spec.Ptr("greeter"), Version: spec.Ptr("1.2.3"),
		Username: spec.Ptr("robot"), Password: spec.Ptr(spec.NewSecret("hunter2")),
	}
}

func TestCacheIsFilledOnce(t *testing.T) {
	t.Parallel()
	raw := archive(t)
	server := repository(t, raw)
	chart := greeterOf(server.URL + "/charts")
	chart.Digest = spec.Ptr(digest(raw))
	cache := manifests.Cache{Dir: t.TempDir() + "/charts", Fetch: manifests.Fetcher{}.Fetch}
	loaded, err := cache.Load(context.Background(), chart)
	require.NoError(t, err)
	assert.Equal(t, "greeter", loaded.Name())
	got, err := cache.Digest(chart)
	require.NoError(t, err)
	assert.Equal(t, digest(raw), got)

	server.Close()
	cache.Fetch = nil
	_, err = cache.Load(context.Background(), chart)
	assert.NoError(t, err, "the archive is kept")

	require.NoError(t, os.WriteFile(cache.Path(chart), []byte("tampered"), 0o600))
	_, err = cache.Load(context.Background(), chart)
	assert.EqualError(t, err, fmt.Sprintf("chart greeter 1.2.3 (%s) of %s/charts has the digest %s: the repository or the cache gave another archive",
		digest(raw), server.URL, digest([]byte("tampered"))))
}

func TestCacheMissIsOneSentence(t *testing.T) {
	t.Parallel()
	chart := greeterOf("https://robot:hunter2@charts.example.com")
	chart.Digest = spec.Ptr("sha256:0123")
	cache := manifests.Cache{Dir: t.TempDir()}
	_, err := cache.Load(context.Background(), chart)
	assert.EqualError(t, err, "chart greeter 1.2.3 (sha256:0123) of https://charts.example.com is not in the cache: run `tpx charts` where there is network")

	cache.Fetch = func(context.Context, spec.Chart) ([]byte, error) { return nil, errors.New("no route to host") }
	_, err = cache.Load(context.Background(), chart)
	assert.EqualError(t, err, "chart greeter 1.2.3 (sha256:0123) of https://charts.example.com is not in the cache and cannot be fetched: "+
		"run `tpx charts` where there is network: no route to host")
}

func TestFetchSaysWhatIsWrong(t *testing.T) {
	t.Parallel()
	server := repository(t, nil)
	missing := greeterOf(server.URL + "/charts")
	missing.Version = spec.Ptr("9.9.9")
	stranger := greeterOf(server.URL + "/charts")
	stranger.Username = nil
	for name, c := range map[string]struct {
		chart spec.Chart
		want  string
	}{
		"no repository":   {spec.Chart{}, "the chart has no repository"},
		"no version":      {spec.Chart{Repository: spec.Ptr("https://x"), Name: spec.Ptr("y")}, "chart y has no version"},
		"no such version": {missing, "the repository has no chart greeter 9.9.9"},
		"no password":     {stranger, "reading the repository's index: " + server.URL + "/charts/index.yaml answers 401 Unauthorized"},
		"another scheme":  {greeterOf("ftp://x"), "repository ftp://x is neither http(s):// nor oci://"},
	} {
		_, err := manifests.Fetcher{}.Fetch(context.Background(), c.chart)
		assert.EqualError(t, err, c.want, name)
	}
}

func TestFetchFromRegistry(t *testing.T) {
	t.Parallel()
	raw := archive(t)
	config := []byte(`{"name":"greeter","version":"1.2.3","apiVersion":"v2"}`)
	manifest, err := json.Marshal(map[string]any{
		"schemaVersion": 2, "mediaType": "application/vnd.oci.image.manifest.v1+json",
		"config": map[string]any{"mediaType": "application/vnd.cncf.helm.config.v1+json", "digest": digest(config), "size": len(config)},
		"layers": []any{map[string]any{"mediaType": "application/vnd.cncf.helm.chart.content.v1.tar+gzip", "digest": digest(raw), "size": len(raw)}},
	})
	require.NoError(t, err)
	contents := map[string][]byte{"manifests/1.2.3": manifest, "manifests/" + digest(manifest): manifest, "blobs/" + digest(config): config, "blobs/" + digest(raw): raw}
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, ok := contents[strings.TrimPrefix(r.URL.Path, "/v2/charts/greeter/")]
		if !ok {
			http.NotFound(w, r)

			return
		}
		if strings.Contains(r.URL.Path, "/manifests/") {
			w.Header().Set("Content-Type", "application/vnd.oci.image.manifest.v1+json")
		}
		w.Header().Set("Docker-Content-Digest", digest(body))
		w.Header().Set("Content-Length", fmt.Sprint(len(body)))
		if r.Method != http.MethodHead {
			_, _ = w.Write(body)
		}
	}))
	t.Cleanup(server.Close)
	chart := spec.Chart{
		Repository: spec.Ptr(strings.Replace(server.URL, "https://", "oci://", 1) + "/charts"), Name: spec.Ptr("greeter"), Version: spec.Ptr("1.2.3"),
	}
	got, err := manifests.Fetcher{Client: server.Client()}.Fetch(context.Background(), chart)
	require.NoError(t, err)
	assert.Equal(t, raw, got)
}

func TestReferenceIsThePathThatHelmTakes(t *testing.T) {
	project := t.TempDir()
	writeChart(t, project+"/charts", "greeter", greeter)
	raw := archive(t)
	fetch := func(context.Context, spec.Chart) ([]byte, error) { return raw, nil }
	remote := greeterOf("https://charts.example.com")

	cache := manifests.ProjectCache(project, fetch)
	path, err := cache.Reference(context.Background(), remote)
	require.NoError(t, err)
	assert.Regexp(t, `^\./\.cache/charts/greeter-1\.2\.3-[0-9a-f]{8}\.tgz$`, path, "the same on every machine")
	kept, err := os.ReadFile(project + "/" + path)
	require.NoError(t, err)
	assert.Equal(t, raw, kept)

	local, err := cache.Reference(context.Background(), spec.Chart{Repository: spec.Ptr("charts"), Name: spec.Ptr("greeter")})
	require.NoError(t, err)
	assert.Equal(t, "./charts/greeter", local)

	remote.Digest = spec.Ptr("sha256:0123")
	_, err = cache.Reference(context.Background(), remote)
	assert.ErrorContains(t, err, "has the digest "+digest(raw))

	elsewhere := t.TempDir()
	t.Setenv(manifests.CacheDirEnv, elsewhere)
	assert.Equal(t, elsewhere, manifests.ProjectCache(project, nil).Dir)
	t.Setenv(manifests.CacheDirEnv, "kept")
	assert.Equal(t, project+"/kept", manifests.ProjectCache(project, nil).Dir)
}
