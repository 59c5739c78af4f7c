// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package talos

import "github.com/talos-proxmox/talos-proxmox/internal/versions"

// versions checks that the versions of Talos and Kubernetes are ones, and fit each other.
func (r *rules) versions() {
	talos, err := versions.ParseTalos(*r.Config.Talos.Version)
	talosKnown := err == nil
	if err == nil {
		err = talos.Contract().Supported()
	}
	if err != nil {
		r.Addf("talos.version", "%s", err)
		talosKnown = false
	}
	kubernetes, err := versions.ParseKubernetes(*r.Config.Kubernetes.Version)
	switch {
	case err != nil:
		r.Addf("kubernetes.version", "%s", err)
	case talosKnown:
		if err := kubernetes.FitsTalos(talos); err != nil {
			r.Addf("kubernetes.version", "%s", err)
		}
	}

	if !talosKnown || r.Said.Talos.Contract == nil {
		return
	}
	contract, err := versions.ParseContract(*r.Config.Talos.Contract)
	if err == nil {
		err = contract.Supported()
	}
	if err == nil {
		err = contract.UnderstoodBy(talos)
	}
	if err != nil {
		r.Addf("talos.contract", "%s", err)
	}
}
