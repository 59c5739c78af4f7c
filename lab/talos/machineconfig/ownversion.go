// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package machineconfig

import (
	"errors"
	"regexp"

	"github.com/hashicorp/go-multierror"
	"github.com/siderolabs/talos/pkg/machinery/api/machine"
	"github.com/siderolabs/talos/pkg/machinery/compatibility"
)

// ofLibrary matches what the library says of a Kubernetes in the name of its own version of Talos.
var ofLibrary = regexp.MustCompile(`version of Kubernetes (\S+) is too (?:old|new) to be used with Talos \S+`)

// OwnRefusals returns what a version of Talos would refuse of what the library does: an older one takes an older
// Kubernetes.
func OwnRefusals(err error, talos string) error {
	var several *multierror.Error
	switch {
	case err == nil:
		return nil
	case errors.As(err, &several):
		kept := &multierror.Error{ErrorFormat: several.ErrorFormat}
		for _, e := range several.Errors {
			if e = OwnRefusals(e, talos); e != nil {
				kept.Errors = append(kept.Errors, e)
			}
		}

		if len(kept.Errors) == len(several.Errors) {
			return err // as it was, with what stands around it
		}

		return kept.ErrorOrNil()
	case takesKubernetesOf(err.Error(), talos):
		return nil
	default:
		return err
	}
}

// takesKubernetesOf reports whether a refusal is of a Kubernetes that a version of Talos takes.
func takesKubernetesOf(refusal, version string) bool {
	found := ofLibrary.FindStringSubmatch(refusal)
	if found == nil {
		return false
	}
	talos, err := compatibility.ParseTalosVersion(&machine.VersionInfo{Tag: version})
	if err != nil {
		return false
	}
	kubernetes, err := compatibility.ParseKubernetesVersion(found[1])

	return err == nil && kubernetes.SupportedWith(talos) == nil
}
