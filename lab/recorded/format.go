// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package recorded

import (
	"fmt"
	"regexp"
	"strings"
)

const (
	longestLine = 1500 // characters
	mostLines   = 16   // of an answer
)

// keyMaterial matches what may be a key, a certificate or a token, wherever it stands.
var keyMaterial = regexp.MustCompile(`[A-Za-z0-9+/]{40,}={0,2}|\b[a-z0-9]{6}\.[a-z0-9]{16}\b|token-secret[\\":]+[a-z0-9]{16}\b`)

// Format returns answers as a file keeps them: without key material, cut off where they become long.
func Format(provenance string, answers []Answer) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n", provenance)
	for _, a := range answers {
		fmt.Fprintf(&b, "## %s\n", a.Call)
		for i, line := range a.Lines {
			if i == mostLines {
				b.WriteString("   …\n")

				break
			}
			fmt.Fprintf(&b, "   %s\n", shorten(line, a.Call))
		}
	}

	return b.String()
}

// shorten takes key material out of a line, and cuts it off where it becomes long.
func shorten(line, call string) string {
	most := longestLine
	if strings.Contains(call, "MachineConfigs") {
		most = 200 // its text holds secrets of every form
	}
	line = keyMaterial.ReplaceAllString(line, "<base64>")
	if len(line) > most {
		line = strings.ToValidUTF8(line[:most], "") + "…"
	}

	return line
}
