// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package gitops

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/talos-proxmox/talos-proxmox/spec"
)

// The API versions of the objects that Flux reads.
const (
	GitRepositoryVersion = "source.toolkit.fluxcd.io/v1"
	KustomizationVersion = "kustomize.toolkit.fluxcd.io/v1"
	FluxInstanceVersion  = "fluxcd.controlplane.io/v1"
)

const (
	// FluxObject names the GitRepository, the Kustomization and the repository's secret, as Flux's own
	// bootstrap does.
	FluxObject = "flux-system"
	// FluxInstanceName names the instance: the operator knows no other.
	FluxInstanceName = "flux"
)

// Object describes a Kubernetes object.
type Object struct {
	APIVersion, Kind, Namespace, Name string
	Spec                              map[string]any
}

// fields returns the object as it is written in a manifest.
func (o Object) fields() map[string]any {
	return map[string]any{
		"apiVersion": o.APIVersion, "kind": o.Kind,
		"metadata": map[string]any{"name": o.Name, "namespace": o.Namespace},
		"spec":     o.Spec,
	}
}

// GitRepository returns the object that makes Flux fetch the repository.
func GitRepository(g spec.GitOps) Object {
	s := map[string]any{
		"url":      *g.Git.URL,
		"interval": interval(g.Git.Interval),
		"ref":      gitReference(g.Git),
	}
	if hasFluxSecret(g) {
		s["secretRef"] = map[string]any{"name": FluxObject}
	}
	if isGitHubApp(g) {
		s["provider"] = "github"
	}

	return Object{APIVersion: GitRepositoryVersion, Kind: "GitRepository", Namespace: *g.Namespace, Name: FluxObject, Spec: s}
}

// Kustomization returns the object that makes Flux apply the path in the repository. When it is removed,
// as when GitOps is turned off, what it applied keeps running.
func Kustomization(g spec.GitOps) Object {
	s := map[string]any{
		"deletionPolicy": "Orphan",
		"interval":       interval(g.Git.SyncInterval),
		"path":           fluxPath(g),
		"prune":          *g.Git.Prune,
		"wait":           *g.Git.Wait,
		"timeout":        interval(g.Git.Timeout),
		"sourceRef":      map[string]any{"kind": "GitRepository", "name": FluxObject},
	}
	if g.DestinationNamespace != nil {
		s["targetNamespace"] = *g.DestinationNamespace
	}
	if g.SOPS != nil {
		s["decryption"] = map[string]any{"provider": "sops", "secretRef": map[string]any{"name": *g.SOPS.SecretName}}
	}

	return Object{APIVersion: KustomizationVersion, Kind: "Kustomization", Namespace: *g.Namespace, Name: FluxObject, Spec: s}
}

// FluxInstance returns the object that asks the operator for a Flux that follows the repository. What
// its sync has no field for is patched into the objects that it makes.
func FluxInstance(g spec.GitOps) (Object, error) {
	s := map[string]any{
		"distribution": map[string]any{"version": *g.Version, "registry": cmp.Or(spec.Value(g.Registry), FluxRegistry)},
	}
	if len(g.Components) > 0 {
		components := make([]any, len(g.Components))
		for i, c := range g.Components {
			components[i] = c
		}
		s["components"] = components
	}
	o := Object{APIVersion: FluxInstanceVersion, Kind: "FluxInstance", Namespace: *g.Namespace, Name: FluxInstanceName, Spec: s}
	if g.Git.URL == nil {
		return o, nil
	}
	s["sync"] = instanceSync(g)
	patches, err := instancePatches(g)
	if err != nil {
		return o, err
	}
	s["kustomize"] = map[string]any{"patches": patches}

	return o, nil
}

// instanceSync returns what the operator's sync has a field for.
func instanceSync(g spec.GitOps) map[string]any {
	sync := map[string]any{
		"kind": "GitRepository", "url": *g.Git.URL, "path": fluxPath(g), "interval": interval(g.Git.Interval),
		"ref": fullReference(g.Git),
	}
	if hasFluxSecret(g) {
		sync["pullSecret"] = FluxObject
	}
	if isGitHubApp(g) {
		sync["provider"] = "github"
	}

	return sync
}

// instancePatches returns the patches that set the rest.
func instancePatches(g spec.GitOps) ([]any, error) {
	patches := []any{}
	for _, p := range []struct {
		kind   string
		fields map[string]any
		order  []string
	}{
		{"GitRepository", map[string]any{"ref": gitReference(g.Git)}, []string{"ref"}},
		{"Kustomization", Kustomization(g).Spec, []string{
			"decryption", "deletionPolicy", "interval", "prune", "targetNamespace", "timeout", "wait",
		}},
	} {
		patch, err := jsonPatch(p.fields, p.order)
		if err != nil {
			return nil, err
		}
		patches = append(patches, map[string]any{"patch": patch, "target": map[string]any{"kind": p.kind}})
	}

	return patches, nil
}

// jsonPatch returns a JSON patch that sets fields of a spec, in the given order.
func jsonPatch(fields map[string]any, order []string) (string, error) {
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

// gitReference returns the part of the repository to follow.
func gitReference(g spec.Git) map[string]any {
	ref := map[string]any{}
	for key, value := range map[string]*string{"branch": g.Branch, "tag": g.Tag, "semver": g.Semver, "commit": g.Commit} {
		if value != nil {
			ref[key] = *value
		}
	}

	return ref
}

// fullReference returns a git reference by its full name.
func fullReference(g spec.Git) string {
	switch {
	case g.Branch != nil:
		return "refs/heads/" + *g.Branch
	case g.Tag != nil:
		return "refs/tags/" + *g.Tag
	default:
		return "refs/heads/main"
	}
}

// fluxPath returns the path as Flux writes it: "./clusters/dev".
func fluxPath(g spec.GitOps) string {
	path := spec.Value(g.Git.Path)
	if path == "." {
		return "./"
	}

	return "./" + strings.TrimPrefix(strings.TrimPrefix(path, "./"), "/")
}

// interval returns a duration as Flux writes it; Go's own form is one of those it reads.
func interval(d *spec.Duration) string { return time.Duration(spec.Value(d)).String() }
