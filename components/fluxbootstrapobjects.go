// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package components

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/talos-proxmox/talos-proxmox/spec"
)

const (
	// FluxChartRepository holds Flux's community chart.
	FluxChartRepository = "https://fluxcd-community.github.io/helm-charts"
	// FluxChartVersion is the version of the community chart (Flux v2.8) when none is asked for.
	FluxChartVersion = "2.18.2"
	// FluxOperatorRepository holds the Flux operator's chart.
	FluxOperatorRepository = "oci://ghcr.io/controlplaneio-fluxcd/charts"
	// FluxOperatorVersion is the version of the operator's chart when none is asked for.
	FluxOperatorVersion = "0.58.1"
	// FluxVersion is the Flux that the operator installs when none is asked for.
	FluxVersion = "2.x"
	// FluxRegistry holds the controllers' images.
	FluxRegistry = "ghcr.io/fluxcd"

	gitRepositoryVersion = "source.toolkit.fluxcd.io/v1"
	kustomizationVersion = "kustomize.toolkit.fluxcd.io/v1"
	fluxInstanceVersion  = "fluxcd.controlplane.io/v1"
	// The operator knows one instance, by this name.
	fluxInstanceName = "flux"
)

// fluxControllers are Flux's controllers and what the community chart calls them.
var fluxControllers = map[string]string{
	"source-controller":           "sourceController",
	"kustomize-controller":        "kustomizeController",
	"helm-controller":             "helmController",
	"notification-controller":     "notificationController",
	"image-reflector-controller":  "imageReflectionController",
	"image-automation-controller": "imageAutomationController",
}

// withFluxDefaults says what was left out.
func withFluxDefaults(clusterName string, g spec.GitOps) spec.GitOps {
	provider := "flux"
	g.Provider = &provider
	g = spec.Config{Cluster: spec.Cluster{Name: &clusterName}, GitOps: g}.WithDefaults().GitOps
	set := func(p **string, v string) {
		if *p == nil {
			*p = &v
		}
	}
	if *g.Method == "operator" {
		set(&g.Chart.Repository, FluxOperatorRepository)
		set(&g.Chart.Name, "flux-operator")
		set(&g.Chart.Version, FluxOperatorVersion)
		set(&g.Version, FluxVersion)
	} else {
		set(&g.Chart.Repository, FluxChartRepository)
		set(&g.Chart.Name, "flux2")
		set(&g.Chart.Version, FluxChartVersion)
	}

	return g
}

// fluxValues are the chart's values that follow from the settings.
func fluxValues(g spec.GitOps) map[string]any {
	values := map[string]any{}
	if *g.Method == "operator" {
		return values
	}
	// The kinds stay when the release goes: with them would go every object of theirs, and with those,
	// as long as a controller still runs, everything that they applied.
	values["crds"] = map[string]any{"annotations": map[string]any{"helm.sh/resource-policy": "keep"}}
	for component, key := range fluxControllers {
		settings := map[string]any{}
		if len(g.Components) > 0 {
			settings["create"] = slices.Contains(g.Components, component)
		}
		if g.Registry != nil {
			settings["image"] = strings.TrimSuffix(*g.Registry, "/") + "/" + component
		}
		if len(settings) > 0 {
			values[key] = settings
		}
	}

	return values
}

// gitReference is the part of the repository to follow.
func gitReference(g spec.Git) map[string]any {
	ref := map[string]any{}
	for key, value := range map[string]*string{"branch": g.Branch, "tag": g.Tag, "semver": g.Semver, "commit": g.Commit} {
		if value != nil {
			ref[key] = *value
		}
	}

	return ref
}

func gitRepositorySpec(g spec.GitOps) map[string]any {
	s := map[string]any{
		"url":      *g.Git.URL,
		"interval": interval(g.Git.Interval),
		"ref":      gitReference(g.Git),
	}
	if hasGitSecret(g) {
		s["secretRef"] = map[string]any{"name": fluxObject}
	}
	if isGitHubApp(g) {
		s["provider"] = "github"
	}

	return s
}

// kustomizationSpec follows the path in the repository. When the Kustomization itself is removed, as
// when GitOps is turned off, what it applied keeps running.
func kustomizationSpec(g spec.GitOps) map[string]any {
	s := map[string]any{
		"deletionPolicy": "Orphan",
		"interval":       interval(g.Git.SyncInterval),
		"path":           repositoryPath(g),
		"prune":          *g.Git.Prune,
		"wait":           *g.Git.Wait,
		"timeout":        interval(g.Git.Timeout),
		"sourceRef":      map[string]any{"kind": "GitRepository", "name": fluxObject},
	}
	if g.DestinationNamespace != nil {
		s["targetNamespace"] = *g.DestinationNamespace
	}
	if g.SOPS != nil {
		s["decryption"] = decryption(g)
	}

	return s
}

func decryption(g spec.GitOps) map[string]any {
	return map[string]any{"provider": "sops", "secretRef": map[string]any{"name": *g.SOPS.SecretName}}
}

// repositoryPath is the path as Flux writes it: "./clusters/dev".
func repositoryPath(g spec.GitOps) string {
	return "./" + strings.TrimPrefix(strings.TrimPrefix(spec.Or(g.Git.Path, ""), "./"), "/")
}

// interval is a duration as Flux writes it; Go's own form is one of those it reads.
func interval(d *spec.Duration) string { return time.Duration(spec.Or(d, 0)).String() }

// fluxInstanceSpec asks the operator for a Flux that follows the repository. What its sync has no
// field for is patched into the objects that it makes.
func fluxInstanceSpec(g spec.GitOps) (map[string]any, error) {
	s := map[string]any{
		"distribution": map[string]any{"version": *g.Version, "registry": spec.Or(g.Registry, FluxRegistry)},
	}
	if len(g.Components) > 0 {
		components := make([]any, len(g.Components))
		for i, c := range g.Components {
			components[i] = c
		}
		s["components"] = components
	}
	if g.Git.URL == nil {
		return s, nil
	}

	sync := map[string]any{
		"kind": "GitRepository", "url": *g.Git.URL, "path": repositoryPath(g), "interval": interval(g.Git.Interval),
		"ref": syncReference(g.Git),
	}
	if hasGitSecret(g) {
		sync["pullSecret"] = fluxObject
	}
	if isGitHubApp(g) {
		sync["provider"] = "github"
	}
	s["sync"] = sync

	kustomization := kustomizationSpec(g)
	delete(kustomization, "path")
	delete(kustomization, "sourceRef")
	patches := []any{}
	for _, p := range []struct {
		kind  string
		spec  map[string]any
		order []string
	}{
		{"GitRepository", map[string]any{"ref": gitReference(g.Git)}, []string{"ref"}},
		{"Kustomization", kustomization, []string{
			"decryption", "deletionPolicy", "interval", "prune", "targetNamespace", "timeout", "wait",
		}},
	} {
		patch, err := addOperations(p.spec, p.order)
		if err != nil {
			return nil, err
		}
		patches = append(patches, map[string]any{"patch": patch, "target": map[string]any{"kind": p.kind}})
	}
	s["kustomize"] = map[string]any{"patches": patches}

	return s, nil
}

// syncReference is a git reference by its full name.
func syncReference(g spec.Git) string {
	switch {
	case g.Branch != nil:
		return "refs/heads/" + *g.Branch
	case g.Tag != nil:
		return "refs/tags/" + *g.Tag
	default:
		return "refs/heads/main"
	}
}

// addOperations is a JSON patch that sets fields of a spec.
func addOperations(fields map[string]any, order []string) (string, error) {
	var operations []map[string]any
	for _, key := range order {
		if value, ok := fields[key]; ok {
			operations = append(operations, map[string]any{"op": "add", "path": "/spec/" + key, "value": value})
		}
	}
	text, err := json.Marshal(operations)
	if err != nil {
		return "", fmt.Errorf("writing a patch of the Flux instance: %w", err)
	}

	return string(text), nil
}
