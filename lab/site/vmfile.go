// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package site

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// file returns the lines of a VM's configuration file as its host writes it.
func (v *vm) file() []string {
	lines := settingLines(v.Config, v.Lock)
	if len(v.Pending)+len(v.PendingDelete) == 0 {
		return lines
	}
	lines = append(lines, "", "[PENDING]")
	if len(v.PendingDelete) > 0 {
		lines = append(lines, "delete: "+strings.Join(slices.Sorted(slices.Values(v.PendingDelete)), ","))
	}

	return append(lines, settingLines(v.Pending, "")...)
}

func settingLines(config map[string]string, lock string) []string {
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
