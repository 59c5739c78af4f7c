// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package charts

import (
	"embed"
	"fmt"
	"io/fs"
	"path"
)

// standInFiles are charts in miniature: what a stack sees of the genuine ones.
//
//go:embed standins
var standInFiles embed.FS

// standIn describes a chart that no Go module carries, at the place and with the versions that stacks ask for.
type standIn struct {
	location, name string
	versions       map[string]string // chart to app
}

// OCI is the directory below which charts are kept that a registry serves, by its host.
const OCI = "oci"

func standIns() []standIn {
	return []standIn{
		{OCI + "/ghcr.io/controlplaneio-fluxcd/charts", "flux-operator", map[string]string{"0.58.1": "0.58.1"}},
		{"argoproj.github.io/argo-helm", "argo-cd", map[string]string{"10.1.1": "v3.4.0", "8.2.5": "v3.0.12"}},
		{"charts.jetstack.io", "cert-manager", map[string]string{"v1.18.2": "v1.18.2"}},
		{"traefik.github.io/charts", "traefik", map[string]string{"37.0.0": "v3.5.0"}},
	}
}

const standInChart = `apiVersion: v2
name: %s
version: %s
appVersion: %s
description: >-
  STAND-IN of the talos-proxmox lab for the chart %s: its workloads, kinds and settings as far as
  stacks of this project see them. The lab's kubelets run the workloads without doing their work.
annotations:
  %s: "true"
`

// pack makes the archives of a stand-in, one for each version.
func (s standIn) pack() ([][]byte, error) {
	own, err := fs.Sub(standInFiles, path.Join("standins", s.name))
	if err != nil {
		return nil, fmt.Errorf("finding stand-in %s: %w", s.name, err)
	}
	helpers, err := standInFiles.ReadFile("standins/workload.tpl")
	if err != nil {
		return nil, fmt.Errorf("finding the stand-ins' templates: %w", err)
	}
	var archives [][]byte
	for version, app := range s.versions {
		files, err := tree(own)
		if err != nil {
			return nil, fmt.Errorf("reading stand-in %s: %w", s.name, err)
		}
		files["templates/_workload.tpl"] = helpers
		files["Chart.yaml"] = fmt.Appendf(nil, standInChart, s.name, version, app, s.name, StandIn)
		packed, err := archive(s.name, files)
		if err != nil {
			return nil, err
		}
		archives = append(archives, packed)
	}

	return archives, nil
}

// packStandIns writes the repositories of every stand-in below dir.
func packStandIns(dir string) error {
	for _, s := range standIns() {
		archives, err := s.pack()
		if err != nil {
			return err
		}
		if err := repository(dir, s.location, archives); err != nil {
			return err
		}
	}

	return nil
}
