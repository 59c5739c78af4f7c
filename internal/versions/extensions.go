// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package versions

import (
	"embed"
	"strings"
)

// extensionFiles are the official extensions of each Talos minor: one name a line, followed by the
// patch release that brought it where that is not the first.
//
//go:embed extensions/*.txt
var extensionFiles embed.FS

// Extensions returns the official system extensions of a Talos version, without their owner; false
// when that minor is not known.
func Extensions(talosVersion string) ([]string, bool) {
	version, err := ParseTalos(talosVersion)
	if err != nil {
		return nil, false
	}
	text, err := extensionFiles.ReadFile("extensions/" + version.Contract().String() + ".txt")
	if err != nil {
		return nil, false
	}

	var names []string
	for line := range strings.Lines(string(text)) {
		name, since, later := strings.Cut(strings.TrimSpace(line), " ")
		if later {
			first, err := ParseTalos(since)
			if err != nil || version.Compare(first) < 0 {
				continue
			}
		}
		names = append(names, name)
	}

	return names, true
}
