// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package charts

import (
	"crypto/sha256"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"helm.sh/helm/v3/pkg/chart"
	"sigs.k8s.io/yaml"
)

const (
	// CiliumRepository is where Cilium's chart is found, without its scheme.
	CiliumRepository = "helm.cilium.io"
	// FluxRepository is where Flux's community chart is found, without its scheme.
	FluxRepository = "fluxcd-community.github.io/helm-charts"
)

// Sources finds the directories of the Go modules that charts are made of.
type Sources struct {
	// Cilium are checkouts of Cilium, one per version to serve.
	Cilium []string
	// Flux are the modules of Flux's controllers.
	Flux []string
	// Gateway are the releases of the Gateway API, by version ("v1.2.0").
	Gateway map[string]string
}

// gatewayDefinitions is where the definitions of the Gateway API's releases are found, without scheme.
const gatewayDefinitions = "raw.githubusercontent.com/kubernetes-sigs/gateway-api"

// Pack writes one Helm repository per host below dir: index.yaml and the charts' archives; and the
// definitions of the Gateway API where its documentation has them fetched from.
func Pack(dir string, sources Sources) error {
	var cilium [][]byte
	for _, module := range sources.Cilium {
		files, err := tree(os.DirFS(filepath.Join(module, "install", "kubernetes", "cilium")))
		if err != nil {
			return fmt.Errorf("reading Cilium's chart in %s: %w", module, err)
		}
		packed, err := archive("cilium", files)
		if err != nil {
			return err
		}
		cilium = append(cilium, packed)
	}
	if err := repository(dir, CiliumRepository, cilium); err != nil {
		return err
	}

	modules := make([]fs.FS, 0, len(sources.Flux))
	for _, module := range sources.Flux {
		modules = append(modules, os.DirFS(module))
	}
	packed, err := flux(modules)
	if err != nil {
		return err
	}

	if err := repository(dir, FluxRepository, [][]byte{packed}); err != nil {
		return err
	}
	for version, module := range sources.Gateway {
		into := filepath.Join(dir, filepath.FromSlash(gatewayDefinitions), version, "config", "crd")
		if err := os.CopyFS(into, os.DirFS(filepath.Join(module, "config", "crd"))); err != nil {
			return fmt.Errorf("copying the Gateway API %s: %w", version, err)
		}
	}

	return packStandIns(dir)
}

// entry describes a chart in a repository's index.
type entry struct {
	*chart.Metadata
	URLs   []string `json:"urls"`
	Digest string   `json:"digest"`
}

// repository writes the archives and the index that lists them.
func repository(dir, location string, archives [][]byte) error {
	into := filepath.Join(dir, filepath.FromSlash(location))
	if err := os.MkdirAll(into, 0o755); err != nil {
		return fmt.Errorf("making repository %s: %w", location, err)
	}

	entries := map[string][]entry{}
	for _, packed := range archives {
		metadata, err := metadataOf(packed)
		if err != nil {
			return fmt.Errorf("repository %s: %w", location, err)
		}
		file := fmt.Sprintf("%s-%s.tgz", metadata.Name, metadata.Version)
		if err := os.WriteFile(filepath.Join(into, file), packed, 0o644); err != nil {
			return fmt.Errorf("writing %s: %w", file, err)
		}
		entries[metadata.Name] = append(entries[metadata.Name], entry{
			Metadata: metadata, Digest: fmt.Sprintf("%x", sha256.Sum256(packed)),
			URLs: []string{"https://" + strings.TrimSuffix(location, "/") + "/" + file},
		})
	}

	index, err := yaml.Marshal(map[string]any{
		"apiVersion": "v1", "generated": "1970-01-01T00:00:00Z", "entries": entries,
	})
	if err != nil {
		return fmt.Errorf("writing the index of %s: %w", location, err)
	}

	return os.WriteFile(filepath.Join(into, "index.yaml"), index, 0o644)
}
