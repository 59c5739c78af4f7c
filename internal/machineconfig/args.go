// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package machineconfig

import (
	"github.com/siderolabs/talos/pkg/machinery/config/types/v1alpha1"

	"github.com/talos-proxmox/talos-proxmox/internal/versions"
	"github.com/talos-proxmox/talos-proxmox/spec"
)

// args are a component's flags in the form Talos takes. Since 1.13 Talos leaves out a flag whose text is
// empty, and takes it from a list, which older ones refuse: those read the null, as which the machinery
// writes an empty text, as an empty text.
func (r *builder) args(flags map[string]string) v1alpha1.Args {
	if len(flags) == 0 {
		return nil
	}
	lists := r.runs(versions.Contract{Major: 1, Minor: 13})
	out := v1alpha1.Args{}
	for name, value := range flags {
		if value == "" && lists {
			out[name] = v1alpha1.NewArgValue("", []string{""})
		} else {
			out[name] = v1alpha1.NewArgValue(value, nil)
		}
	}

	return out
}

// runs says whether the cluster runs a Talos of that minor version or a newer one.
func (r *builder) runs(since versions.Contract) bool {
	talos, err := versions.ParseTalos(spec.Or(r.cfg.Talos.Version, ""))

	return err == nil && !since.NewerThan(talos.Contract())
}
