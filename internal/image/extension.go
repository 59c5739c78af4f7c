// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package image

import (
	"fmt"
	"slices"
	"strings"

	"github.com/agext/levenshtein"

	"github.com/talos-proxmox/talos-proxmox/internal/versions"
	"github.com/talos-proxmox/talos-proxmox/spec"
)

// owner of the official extensions.
const owner = "siderolabs/"

// Extension returns the official name of an extension given in full ("siderolabs/lldpd") or short
// ("lldpd", "lldp"), checked against what that Talos version has.
func Extension(name, talosVersion string) (string, error) {
	known, ok := versions.Extensions(talosVersion)
	if !ok {
		return "", fmt.Errorf("the extensions of Talos %s are not known", talosVersion)
	}
	short := strings.TrimPrefix(spec.OfficialExtension(name), owner)
	if strings.Contains(short, "/") {
		return "", fmt.Errorf("%q is no official extension: they are named %s<name>", name, owner)
	}
	if slices.Contains(known, short) {
		return owner + short, nil
	}

	return "", fmt.Errorf("Talos %s has no extension %q%s", talosVersion, name, suggestion(short, known))
}

// suggestion names the extensions that look like the unknown one.
func suggestion(name string, known []string) string {
	var alike []string
	for _, candidate := range known {
		if len(name) > 2 && strings.Contains(candidate, name) ||
			levenshtein.Distance(name, candidate, nil) <= max(2, len(name)/4) {
			alike = append(alike, owner+candidate)
		}
	}
	if len(alike) == 0 {
		return "; the list is at https://github.com/siderolabs/extensions"
	}

	return "; did you mean " + strings.Join(alike, " or ") + "?"
}
