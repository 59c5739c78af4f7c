// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package pve

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// SettingLines returns the lines of a section of a VM's configuration file.
func SettingLines(config map[string]string, lock string) []string {
	var lines []string
	if text, ok := config["description"]; ok {
		for _, line := range strings.Split(strings.TrimSuffix(text, "\n"), "\n") {
			lines = append(lines, "#"+encodeText(line))
		}
	}
	all := maps.Clone(config)
	if all == nil {
		all = map[string]string{}
	}
	delete(all, "description")
	if lock != "" {
		all["lock"] = lock
	}
	for _, key := range slices.Sorted(maps.Keys(all)) {
		lines = append(lines, key+": "+all[key])
	}

	return lines
}

// encodeText writes what is no plain text as a URL does.
func encodeText(s string) string {
	var b strings.Builder
	for _, c := range []byte(s) {
		if c < ' ' || c > '~' || c == '%' || c == ':' {
			fmt.Fprintf(&b, "%%%02X", c)
		} else {
			b.WriteByte(c)
		}
	}

	return b.String()
}
