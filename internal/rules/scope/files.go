// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package scope

import "strings"

// RuntimeSettings is the one file outside /var that Talos creates: the container runtime's.
const RuntimeSettings = "/etc/cri/conf.d/20-customization.part"

// CreatableFile reports whether Talos creates a machine file (machine.files, op create) at a path.
func CreatableFile(path string) bool {
	return strings.HasPrefix(path, "/var/") || path == RuntimeSettings
}
