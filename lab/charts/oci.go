// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package charts

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
)

const (
	ociManifest = "application/vnd.oci.image.manifest.v1+json"
	helmConfig  = "application/vnd.cncf.helm.config.v1+json"
	helmChart   = "application/vnd.cncf.helm.chart.content.v1.tar+gzip"
)

// ociForm is what a client asks a registry for: a manifest by tag or digest, or a blob by digest.
var ociForm = regexp.MustCompile(`^/v2/(.+)/([^/]+)/(manifests|blobs)/([^/]+)$`)

// ServesOCI reports whether the registry of the charts packed below dir has what is asked for, at any host:
// registries are reached through mirrors too.
func ServesOCI(dir string) func(urlPath string) bool {
	return func(urlPath string) bool {
		m := ociForm.FindStringSubmatch(urlPath)

		return m != nil && len(packedCharts(dir, m[1], m[2])) > 0
	}
}

// packedCharts returns the archives of one chart of a registry.
func packedCharts(dir, repository, name string) []string {
	// The pattern is well formed, the only way in which Glob fails.
	found, _ := filepath.Glob(filepath.Join(dir, OCI, "*", filepath.FromSlash(path.Clean(repository)), name+"-*.tgz"))

	return found
}

// RegistryHandler serves the charts packed below dir as an OCI registry does.
func RegistryHandler(dir string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		m := ociForm.FindStringSubmatch(r.URL.Path)
		if m == nil {
			http.NotFound(w, r)

			return
		}
		for _, file := range packedCharts(dir, m[1], m[2]) {
			if content, kind, ok := partOf(file, m[2], m[3], m[4]); ok {
				w.Header().Set("Content-Type", kind)
				w.Header().Set("Content-Length", strconv.Itoa(len(content)))
				w.Header().Set("Docker-Content-Digest", digest(content))
				if r.Method != http.MethodHead {
					_, _ = w.Write(content) // the client went away
				}

				return
			}
		}
		http.NotFound(w, r)
	})
}

// partOf returns the manifest or the blob of an archive that is asked for.
func partOf(file, name, what, reference string) (content []byte, kind string, ok bool) {
	packed, err := os.ReadFile(file) // G304: the lab's own charts
	if err != nil {
		return nil, "", false
	}
	metadata, err := metadataOf(packed)
	if err != nil {
		return nil, "", false
	}
	config, err := json.Marshal(metadata)
	if err != nil {
		return nil, "", false
	}
	layer := func(kind string, content []byte) map[string]any {
		return map[string]any{"mediaType": kind, "digest": digest(content), "size": len(content)}
	}
	manifest, err := json.Marshal(map[string]any{
		"schemaVersion": 2, "mediaType": ociManifest, // the form's own version
		"config": layer(helmConfig, config), "layers": []any{layer(helmChart, packed)},
	})
	if err != nil {
		return nil, "", false
	}
	version := strings.TrimSuffix(strings.TrimPrefix(filepath.Base(file), name+"-"), ".tgz")
	if what == "manifests" {
		return manifest, ociManifest, reference == version || reference == digest(manifest)
	}
	for kind, blob := range map[string][]byte{helmConfig: config, helmChart: packed} {
		if digest(blob) == reference {
			return blob, kind, true
		}
	}

	return nil, "", false
}

func digest(content []byte) string { return fmt.Sprintf("sha256:%x", sha256.Sum256(content)) }
