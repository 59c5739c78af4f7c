// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package rules

import (
	"strings"

	"github.com/Masterminds/semver/v3"

	"github.com/talos-proxmox/talos-proxmox/internal/versions"
)

// versions checks that the versions of Talos and Kubernetes are ones, and fit each other.
func (r *rules) versions() {
	talos, err := versions.ParseTalos(*r.c.Talos.Version)
	talosKnown := err == nil
	if err == nil {
		err = talos.Contract().Supported()
	}
	if err != nil {
		r.l.Addf("talos.version", "%s", err)
		talosKnown = false
	}
	kubernetes, err := versions.ParseKubernetes(*r.c.Kubernetes.Version)
	switch {
	case err != nil:
		r.l.Addf("kubernetes.version", "%s", err)
	case talosKnown:
		if err := kubernetes.FitsTalos(talos); err != nil {
			r.l.Addf("kubernetes.version", "%s", err)
		}
	}

	if !talosKnown || r.said.Talos.Contract == nil {
		return
	}
	contract, err := versions.ParseContract(*r.c.Talos.Contract)
	if err == nil {
		err = contract.Supported()
	}
	if err == nil {
		err = contract.UnderstoodBy(talos)
	}
	if err != nil {
		r.l.Addf("talos.contract", "%s", err)
	}
}

// chartVersion checks that a chart's version is exact.
func (r *rules) chartVersion(path string, version *string) {
	if version == nil {
		r.l.Addf(path, "is required: say which version of the chart to install")

		return
	}
	if _, err := semver.StrictNewVersion(strings.TrimPrefix(*version, "v")); err != nil {
		r.l.Addf(path, "%q is not an exact version such as 1.18.4", *version)
	}
}
