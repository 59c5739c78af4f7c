// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package check

import (
	"slices"
	"strings"

	"github.com/agext/levenshtein"
)

// Nearest returns the candidate that text was probably meant to be, or "" when none is near: the same
// but for case, dashes and underscores, or a few letters away.
func Nearest(text string, candidates []string) string {
	meant := bare(text)
	best, distance := "", len(meant)/3+2
	for _, c := range candidates {
		if bare(c) == meant {
			return c
		}
		if d := distanceOf(meant, bare(c)); d < distance && 2*d < len(meant) {
			best, distance = c, d
		}
	}

	return best
}

// lookalikes are letters that look like others, and those that do not count.
var lookalikes = strings.NewReplacer("-", "", "_", "", ".", "", "а", "a", "е", "e", "о", "o", "р", "p", "с", "c", "х", "x",
	"у", "y", "і", "i",
	"ѕ", "s", "ј", "j", "ο", "o", "α", "a", "ν", "v", "ı", "i", "\u200b", "", "\u200c", "", "\u200d", "", "\ufeff", "", "\u00a0", "")

func bare(s string) string {
	return strings.ToLower(lookalikes.Replace(s))
}

// distanceOf counts the letters to insert, remove or replace; two letters swapped count as one.
func distanceOf(a, b string) int {
	d := levenshtein.Distance(a, b, nil)
	if d == 2 && len(a) == len(b) && sorted(a) == sorted(b) {
		return 1
	}

	return d
}

func sorted(s string) string {
	letters := []byte(s)
	slices.Sort(letters)

	return string(letters)
}
