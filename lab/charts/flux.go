// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package charts

import (
	_ "embed"
	"fmt"
	"io/fs"
	"maps"
	"slices"
)

const (
	// FluxVersion is the version of Flux's community chart that the stand-in stands for.
	FluxVersion = "2.18.2"
	// StandIn is the annotation that marks a chart which is not the genuine one.
	StandIn = "talos-proxmox.dev/stand-in"
)

const fluxChart = `apiVersion: v2
name: flux2
version: %s
appVersion: 2.8.8
description: >-
  STAND-IN of the talos-proxmox lab for Flux's community chart: the controllers' genuine CRDs, and
  Deployments whose work the lab does with the genuine controllers, where those were built.
annotations:
  %s: "true"
`

//go:embed fluxvalues.yaml
var fluxValues []byte

//go:embed fluxtemplate.yaml
var fluxTemplate []byte

const fluxCRDs = `{{- if .Values.installCRDs }}
{{- range $path, $_ := .Files.Glob "files/crds/*.yaml" }}
{{- $crd := $.Files.Get $path | fromYaml }}
---
{{ mergeOverwrite $crd (dict "metadata" (dict "annotations" ($.Values.crds.annotations | default dict))) | toYaml }}
{{- end }}
{{- end }}
`

// flux generates the stand-in for Flux's community chart from the controllers' modules.
func flux(modules []fs.FS) ([]byte, error) {
	files := map[string][]byte{
		"Chart.yaml":                 fmt.Appendf(nil, fluxChart, FluxVersion, StandIn),
		"values.yaml":                fluxValues,
		"templates/controllers.yaml": fluxTemplate,
		"templates/crds.yaml":        []byte(fluxCRDs),
	}
	for _, module := range modules {
		bases, err := fs.Sub(module, "config/crd/bases")
		if err != nil {
			return nil, fmt.Errorf("finding CRDs: %w", err)
		}
		crds, err := tree(bases)
		if err != nil {
			return nil, fmt.Errorf("reading CRDs: %w", err)
		}
		for _, name := range slices.Sorted(maps.Keys(crds)) {
			files["files/crds/"+name] = crds[name]
		}
	}

	return archive("flux2", files)
}
