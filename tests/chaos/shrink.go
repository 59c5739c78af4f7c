// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package chaos

import "slices"

// Shrink returns a shorter script that still fails: it takes steps away, many at first and then one by one,
// as long as what is left fails.
func Shrink(script Script, fails func(Script) bool) Script {
	for size := max(1, len(script.Steps)/2); size >= 1; size /= 2 {
		for at := 0; at < len(script.Steps); {
			shorter := Script{Nodes: script.Nodes, Steps: slices.Delete(slices.Clone(script.Steps), at, min(at+size, len(script.Steps)))}
			if fails(shorter) {
				script = shorter
			} else {
				at += size
			}
		}
	}

	return script
}
