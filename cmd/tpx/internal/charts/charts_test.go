// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package charts

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chartutil"

	"github.com/talos-proxmox/talos-proxmox/cmd/tpx/internal/pulumi"
)

// stackWith returns the project's dev stack with a chart of that repository at day 0.
func stackWith(t *testing.T, repository string) string {
	t.Helper()
	dir := t.TempDir()
	text, err := os.ReadFile(filepath.Join("..", "..", "..", "..", "Pulumi.dev.yaml"))
	require.NoError(t, err)
	lines, skipping := []string{}, false
	for _, line := range strings.Split(string(text), "\n") {
		if strings.HasPrefix(line, "  talos-proxmox:") {
			skipping = strings.HasPrefix(line, "  talos-proxmox:gitops:") || strings.HasPrefix(line, "  talos-proxmox:manifests:")
		}
		if !skipping {
			lines = append(lines, line)
		}
	}
	lines = append(lines, "  talos-proxmox:manifests:", "    charts:",
		"      greeter: {repository: "+repository+", name: greeter, version: 1.2.3, namespace: greetings}", "")
	require.NoError(t, os.WriteFile(filepath.Join(dir, "Pulumi.mine.yaml"), []byte(strings.Join(lines, "\n")), 0o600))

	return dir
}

func TestChartsAreFetchedOnceAndTheirDigestsPinned(t *testing.T) {
	t.Parallel()
	path, err := chartutil.Save(&chart.Chart{Metadata: &chart.Metadata{APIVersion: "v2", Name: "greeter", Version: "1.2.3"}}, t.TempDir())
	require.NoError(t, err)
	archive, err := os.ReadFile(path)
	require.NoError(t, err)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/index.yaml" {
			fmt.Fprint(w, "apiVersion: v1\nentries:\n  greeter:\n  - {name: greeter, version: 1.2.3, urls: [greeter.tgz]}\n")

			return
		}
		_, _ = w.Write(archive)
	}))
	t.Cleanup(server.Close)
	dir := stackWith(t, server.URL)
	project := pulumi.Project{Dir: dir, Name: "talos-proxmox"}
	digest := fmt.Sprintf("sha256:%x", sha256.Sum256(archive))
	for _, note := range []string{" (now in charts.lock.yaml)", ""} {
		var out bytes.Buffer
		require.NoError(t, Run(t.Context(), project, nil, &out))
		assert.Equal(t, "greeter 1.2.3 "+digest+note+"\n", out.String())
		server.Close()
	}
	locked, err := os.ReadFile(filepath.Join(dir, "charts.lock.yaml"))
	require.NoError(t, err)
	assert.Contains(t, string(locked), server.URL+":\n  greeter-1.2.3: "+digest+"\n")
	assert.ErrorIs(t, Run(t.Context(), project, []string{"gone"}, &bytes.Buffer{}), os.ErrNotExist)
}
