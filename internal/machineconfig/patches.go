// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package machineconfig

import (
	"errors"
	"fmt"

	jsonpatch "github.com/evanphx/json-patch"
	"github.com/siderolabs/talos/pkg/machinery/config"
	document "github.com/siderolabs/talos/pkg/machinery/config/config"
	"github.com/siderolabs/talos/pkg/machinery/config/configpatcher"
	"github.com/siderolabs/talos/pkg/machinery/config/container"
	"github.com/siderolabs/talos/pkg/machinery/config/types/v1alpha1"

	"github.com/talos-proxmox/talos-proxmox/internal/check"
	"github.com/talos-proxmox/talos-proxmox/internal/machineconfig/explain"
	"github.com/talos-proxmox/talos-proxmox/spec"
)

// patch holds a user's patch after it was read.
type patch struct {
	// path of the setting it came from, "talos.patches.all[0]".
	path string
	configpatcher.Patch
}

// source holds a patch as the settings give it.
type source struct {
	path string
	spec.Patch
}

// sourcesOf returns the patches of a node in the order they are applied: all nodes', the role's, the
// node's own.
func (in Input) sourcesOf(name string) []source {
	node, _ := in.Config.Node(name)
	role, rolePath := in.Config.Talos.Patches.Worker, "talos.patches.worker"
	if node.IsControlPlane() {
		role, rolePath = in.Config.Talos.Patches.ControlPlane, "talos.patches.controlPlane"
	}
	var all []source
	for _, group := range []struct {
		path    string
		patches []spec.Patch
	}{
		{"talos.patches.all", in.Config.Talos.Patches.All},
		{rolePath, role},
		{check.Join("nodes", name, "patches"), node.Patches},
	} {
		for i, p := range group.patches {
			all = append(all, source{path: check.Index(group.path, i), Patch: p})
		}
	}

	return all
}

// patchesOf reads the patches of a node.
func (in Input) patchesOf(name string) ([]patch, error) {
	var patches []patch
	for _, s := range in.sourcesOf(name) {
		p, err := in.readPatch(s)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", s.path, err)
		}
		patches = append(patches, p)
	}

	return patches, nil
}

// readPatch reads a patch from its place.
func (in Input) readPatch(s source) (patch, error) {
	text := []byte(spec.Value(s.Inline))
	switch {
	case s.Inline == nil && s.File == nil:
		return patch{}, errors.New("the patch is empty: set inline or file")
	case s.Inline != nil && s.File != nil:
		return patch{}, errors.New("the patch is both inline and a file: set one of them")
	case s.File != nil:
		if in.ReadFile == nil {
			return patch{}, fmt.Errorf("the patch is file %q, but files cannot be read here", *s.File)
		}
		var err error
		if text, err = in.ReadFile(*s.File); err != nil {
			return patch{}, fmt.Errorf("reading the patch: %w", err)
		}
	}
	p, err := configpatcher.LoadPatch(text)
	if err != nil {
		var problems []error
		for _, found := range unreadable(text, err) {
			problems = append(problems, found)
		}

		return patch{}, errors.Join(problems...)
	}

	return patch{path: s.path, Patch: p}, nil
}

// apply returns the configuration with the patch over it.
func (p patch) apply(provider config.Provider) (config.Provider, error) {
	switch kind := p.Patch.(type) {
	case jsonpatch.Patch:
		return applyOperations(provider, kind)
	case configpatcher.StrategicMergePatch:
		merged, err := configpatcher.StrategicMerge(provider, kind)
		if err != nil {
			return nil, errors.New("the patch cannot be merged: " + explain.HideValues(err.Error()))
		}

		return merged, nil
	default:
		return nil, fmt.Errorf("unknown kind of patch %T", p.Patch)
	}
}

// applyOperations applies a JSON patch to the machine configuration itself. Talos's own tool refuses
// such patches once other documents stand beside it; their paths can only mean the one document.
func applyOperations(provider config.Provider, p jsonpatch.Patch) (config.Provider, error) {
	main, others := split(provider)
	if main == nil {
		return nil, errors.New("there is no machine configuration to patch")
	}
	out, err := configpatcher.Apply(configpatcher.WithConfig(container.NewV1Alpha1(main)), []configpatcher.Patch{p})
	if err != nil {
		return nil, errors.New("the patch cannot be applied: " + explain.HideValues(err.Error()))
	}
	patched, err := out.Config()
	if err != nil {
		return nil, errors.New("the patch leaves no configuration that Talos reads: " + explain.Load(err))
	}
	joined, err := container.New(append([]document.Document{patched.RawV1Alpha1()}, others...)...)
	if err != nil {
		return nil, fmt.Errorf("joining the documents: %w", err)
	}

	return joined, nil
}

// split takes the machine configuration from the documents beside it.
func split(provider config.Provider) (*v1alpha1.Config, []document.Document) {
	var (
		main   *v1alpha1.Config
		others []document.Document
	)
	for _, doc := range provider.Documents() {
		if c, ok := doc.(*v1alpha1.Config); ok {
			main = c

			continue
		}
		others = append(others, doc)
	}

	return main, others
}
