// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package gitops

import (
	"context"
	"errors"
	"fmt"

	"sigs.k8s.io/yaml"

	"github.com/talos-proxmox/talos-proxmox/internal/check"
	"github.com/talos-proxmox/talos-proxmox/internal/manifests"
	"github.com/talos-proxmox/talos-proxmox/internal/rules"
	"github.com/talos-proxmox/talos-proxmox/spec"
)

// Values returns the values of the controller's chart: the user's over those that follow from the
// settings, key by key.
func Values(g spec.GitOps) (map[string]any, error) {
	values := fluxValues(g)
	if spec.Value(g.Provider) == ArgoCD {
		var err error
		if values, err = argoValues(g); err != nil {
			return nil, err
		}
	}
	if g.Chart.Values == nil {
		return values, nil
	}
	var theirs map[string]any
	if err := yaml.Unmarshal([]byte(*g.Chart.Values), &theirs); err != nil {
		return nil, check.At("gitops.chart.values", errors.New("is not a YAML mapping"))
	}

	return manifests.MergeValues(values, theirs), nil
}

// Chart returns the chart that the controller is installed from when the cluster is ready; false where
// there is no controller, or Talos installs it at day 0.
func Chart(cfg spec.Config) (spec.Chart, bool) {
	g := cfg.GitOps
	if !hasController(g) || AtDayZero(g) {
		return spec.Chart{}, false
	}

	return WithDefaults(spec.Value(cfg.Cluster.Name), g).Chart, true
}

// CheckChart finds the controller's chart, and whether it may be installed in the cluster's version of
// Kubernetes, before anything is registered: it would be missed only when the cluster is up.
func CheckChart(ctx context.Context, cfg spec.Config, charts manifests.Cache) error {
	chart, ok := Chart(cfg)
	if !ok {
		return nil
	}
	loaded, err := charts.Load(ctx, chart)
	if err != nil {
		return check.At("gitops.chart", err)
	}
	version := spec.Value(cfg.Kubernetes.Version)
	if version == "" {
		return nil
	}
	if err := manifests.FitsKubernetes(loaded, version); err != nil {
		return check.At("gitops.chart", fmt.Errorf("%s %s: %w", loaded.Name(), loaded.Metadata.Version, err))
	}

	return nil
}

// Check returns what the settings of the component called name get wrong; cached reports whether the
// chart comes from a cache. Settings that only Flux has are looked for before defaults are filled in.
func Check(name, clusterName string, given spec.GitOps, cached bool) error {
	if spec.Value(given.Provider) == ArgoCD {
		var problems check.List
		rules.CheckArgoCD(given, "", &problems)
		if err := problems.Err("GitOps " + name); err != nil {
			return err
		}
	}
	g := WithDefaults(clusterName, given)
	var problems check.List
	if clusterName == "" {
		problems.Addf("clusterName", "is required")
	}
	if g.Chart.Digest != nil && !cached && !AtDayZero(g) {
		problems.Addf("chart.digest", "cannot be checked for a chart that the Kubernetes provider fetches: give Charts, or leave it out")
	}
	if g.Git.Auth != nil && spec.Value(g.Git.Auth.Type) == "ssh" && spec.Value(g.Git.Auth.KnownHosts) == "" {
		problems.Addf("git.auth.knownHosts", "is required for ssh: the output of `ssh-keyscan` that you have checked")
	}

	return problems.Err("GitOps " + name)
}
