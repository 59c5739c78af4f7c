// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package components

import (
	"fmt"

	"sigs.k8s.io/yaml"

	"github.com/talos-proxmox/talos-proxmox/spec"
)

// FluxDayZero adds Flux to what Talos applies at bootstrap, when GitOps asks for the method inline:
// the community chart, and the objects that make Flux follow the repository. The repository's
// credentials are not among them, since whoever reads a machine configuration would see them;
// [NewFluxBootstrap] adds those when the cluster is ready. Any other configuration comes back as it is.
func FluxDayZero(cfg spec.Config) (spec.Config, error) {
	if spec.Or(cfg.GitOps.Provider, "none") != "flux" || spec.Or(cfg.GitOps.Method, "") != "inline" {
		return cfg, nil
	}
	g := withFluxDefaults(spec.Or(cfg.Cluster.Name, ""), cfg.GitOps)
	values, err := chartValues(g.Chart, fluxValues(g))
	if err != nil {
		return cfg, fmt.Errorf("gitops.%w", err)
	}
	text, err := yaml.Marshal(values)
	if err != nil {
		return cfg, fmt.Errorf("writing the values of Flux's chart: %w", err)
	}
	objects := ""
	if g.Git.URL != nil {
		if objects, err = followObjects(g); err != nil {
			return cfg, err
		}
	}

	return addDayZero(cfg, g, "flux2", string(text), "flux-sync", objects)
}

// followObjects are the objects that make Flux follow the repository, as YAML.
func followObjects(g spec.GitOps) (string, error) {
	text := ""
	for _, o := range []struct {
		apiVersion, kind string
		spec             map[string]any
	}{
		{gitRepositoryVersion, "GitRepository", gitRepositorySpec(g)},
		{kustomizationVersion, "Kustomization", kustomizationSpec(g)},
	} {
		document, err := yaml.Marshal(map[string]any{
			"apiVersion": o.apiVersion, "kind": o.kind,
			"metadata": map[string]any{"name": fluxObject, "namespace": *g.Namespace},
			"spec":     o.spec,
		})
		if err != nil {
			return "", fmt.Errorf("writing the %s of Flux: %w", o.kind, err)
		}
		text += "---\n" + string(document)
	}

	return text, nil
}
