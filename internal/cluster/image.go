// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package cluster

import "fmt"

// Image identifies the Talos image of a node.
type Image struct {
	// Version of Talos, "v1.12.4".
	Version string
	// Schematic is the id of its schematic; empty when any will do.
	Schematic string
	// Installer is the container image that installs it.
	Installer string
}

// String returns "v1.12.4 (ce4c980550dd)".
func (i Image) String() string {
	if i.Schematic == "" {
		return i.Version
	}

	return fmt.Sprintf("%s (%s)", i.Version, i.Schematic[:min(len(i.Schematic), 12)])
}

// SameImage reports whether a node that runs the one image runs the wanted one. A wanted image without
// schematic accepts any.
func SameImage(runs, wanted Image) bool {
	return runs.Version == wanted.Version && (wanted.Schematic == "" || runs.Schematic == wanted.Schematic)
}
