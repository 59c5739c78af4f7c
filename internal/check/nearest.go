// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package check

import "strings"

// Nearest is the candidate that text was probably meant to be, or "" when none is near: the same
// but for case, dashes and underscores, or a few letters away.
func Nearest(text string, candidates []string) string {
	meant := bare(text)
	best, distance := "", len(meant)/3+2
	for _, c := range candidates {
		if bare(c) == meant {
			return c
		}
		if d := edits(meant, bare(c)); d < distance && 2*d < len(meant) {
			best, distance = c, d
		}
	}

	return best
}

func bare(s string) string {
	return strings.ToLower(strings.NewReplacer("-", "", "_", "", ".", "").Replace(s))
}

// edits counts the letters to insert, remove, replace or swap with their neighbour.
func edits(a, b string) int {
	rows := make([][]int, len(a)+1)
	for i := range rows {
		rows[i] = make([]int, len(b)+1)
		rows[i][0] = i
	}
	for j := range rows[0] {
		rows[0][j] = j
	}
	for i := 1; i <= len(a); i++ {
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			rows[i][j] = min(rows[i-1][j]+1, rows[i][j-1]+1, rows[i-1][j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				rows[i][j] = min(rows[i][j], rows[i-2][j-2]+1)
			}
		}
	}

	return rows[len(a)][len(b)]
}
