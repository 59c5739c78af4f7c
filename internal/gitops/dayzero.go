// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package gitops

import (
	"errors"
	"fmt"

	"sigs.k8s.io/yaml"

	"github.com/talos-proxmox/talos-proxmox/internal/check"
	"github.com/talos-proxmox/talos-proxmox/spec"
)

// dayZeroOrder puts the controller behind everything else that a cluster gets at day 0.
const dayZeroOrder = 900

// DayZero adds the controller to what Talos applies at bootstrap, where the settings ask for that: its
// chart, and the objects that make it follow the repository. The repository's credentials are not among
// them, since whoever reads a machine configuration would see them; they follow when the cluster is
// ready. Any other configuration comes back as it is.
func DayZero(cfg spec.Config) (spec.Config, error) {
	if !AtDayZero(cfg.GitOps) {
		return cfg, nil
	}
	clusterName := spec.Value(cfg.Cluster.Name)
	g := WithDefaults(clusterName, cfg.GitOps)
	values, err := Values(g)
	if err != nil {
		return cfg, err
	}
	text, err := yaml.Marshal(values)
	if err != nil {
		return cfg, fmt.Errorf("writing the values of the GitOps controller's chart: %w", err)
	}
	objects, err := objectsText(syncObjects(clusterName, g))
	if err != nil {
		return cfg, err
	}
	sync := "flux-sync"
	if *g.Provider == ArgoCD {
		sync = "argocd-sync"
	}

	return addDayZero(cfg, g, string(text), sync, objects)
}

// syncObjects returns the objects that make the controller follow the repository.
func syncObjects(clusterName string, g spec.GitOps) []Object {
	switch {
	case g.Git.URL == nil:
		return nil
	case *g.Provider == ArgoCD:
		return []Object{Application(clusterName, g)}
	default:
		return []Object{GitRepository(g), Kustomization(g)}
	}
}

// objectsText returns objects as YAML documents; none gives an empty text.
func objectsText(objects []Object) (string, error) {
	text := ""
	for _, o := range objects {
		document, err := yaml.Marshal(o.fields())
		if err != nil {
			return "", fmt.Errorf("writing the %s %q: %w", o.Kind, o.Name, err)
		}
		if len(objects) > 1 {
			text += "---\n"
		}
		text += string(document)
	}

	return text, nil
}

// addDayZero adds the controller's chart as a release, and the objects that make it follow the
// repository as the manifest sync, to a copy of the configuration.
func addDayZero(cfg spec.Config, g spec.GitOps, values, sync, objects string) (spec.Config, error) {
	cfg = spec.Clone(cfg)
	release := Release(g)
	if _, taken := cfg.Manifests.Charts[release]; taken {
		return cfg, check.At(check.Key("manifests.charts", release), errors.New("gitops installs a chart of this name at day 0: choose another"))
	}
	if _, taken := cfg.Manifests.Inline[sync]; taken {
		return cfg, check.At(check.Key("manifests.inline", sync), errors.New("gitops has a manifest of this name at day 0: choose another"))
	}
	if cfg.Manifests.Charts == nil {
		cfg.Manifests.Charts = map[string]spec.DayZeroChart{}
	}
	chart := g.Chart
	chart.Values = spec.Ptr(spec.Text(values))
	cfg.Manifests.Charts[release] = spec.DayZeroChart{
		Chart: chart, Namespace: g.Namespace, CreateNamespace: spec.Ptr(true), Order: spec.Ptr(dayZeroOrder),
	}
	if objects == "" {
		return cfg, nil
	}
	if cfg.Manifests.Inline == nil {
		cfg.Manifests.Inline = map[string]spec.Manifest{}
	}
	cfg.Manifests.Inline[sync] = spec.Manifest{Order: spec.Ptr(dayZeroOrder + 1), Inline: spec.Ptr(spec.Text(objects))}

	return cfg, nil
}
