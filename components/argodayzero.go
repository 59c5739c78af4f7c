// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package components

import (
	"fmt"

	"sigs.k8s.io/yaml"

	"github.com/talos-proxmox/talos-proxmox/spec"
)

// ArgoDayZero adds Argo CD to what Talos applies at bootstrap, when GitOps asks for it with DayZero:
// the chart, and the Application that follows the repository. The repository's credentials are not
// among them, since whoever reads a machine configuration would see them; [NewArgoBootstrap] adds those
// when the cluster is ready. Any other configuration comes back as it is.
func ArgoDayZero(cfg spec.Config) (spec.Config, error) {
	if spec.Or(cfg.GitOps.Provider, "none") != argoProvider || !spec.Or(cfg.GitOps.DayZero, false) {
		return cfg, nil
	}
	clusterName := spec.Or(cfg.Cluster.Name, "")
	g := withArgoDefaults(clusterName, cfg.GitOps)
	values, err := argoChartValues(g)
	if err != nil {
		return cfg, fmt.Errorf("gitops.%w", err)
	}
	text, err := yaml.Marshal(values)
	if err != nil {
		return cfg, fmt.Errorf("writing the values of Argo CD's chart: %w", err)
	}
	application := []byte{}
	if g.Git.URL != nil {
		application, err = yaml.Marshal(map[string]any{
			"apiVersion": applicationVersion, "kind": applicationKind,
			"metadata": map[string]any{"name": clusterName, "namespace": *g.Namespace},
			"spec":     applicationSpec(g),
		})
		if err != nil {
			return cfg, fmt.Errorf("writing the Application of Argo CD: %w", err)
		}
	}

	return addDayZero(cfg, g, argoRelease, string(text), "argocd-sync", string(application))
}
