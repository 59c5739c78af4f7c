// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package scope

import "strconv"

// AndMore returns "a" or "a and 3 more".
func AndMore(names []string) string {
	if len(names) == 1 {
		return names[0]
	}

	return names[0] + " and " + strconv.Itoa(len(names)-1) + " more"
}

// Have returns "a has" or "a and 3 more have".
func Have(names []string) string {
	if len(names) == 1 {
		return names[0] + " has"
	}

	return AndMore(names) + " have"
}
