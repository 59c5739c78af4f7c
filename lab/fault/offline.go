// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package fault

import (
	"fmt"
	"net/netip"
	"path"
	"strings"
)

// CutOff reports whether a name outside the site does not answer. Addresses are the site's own.
func (s *Set) CutOff(name string) bool {
	f, offline := s.Holds(Offline, nil)
	if !offline {
		return false
	}
	if _, err := netip.ParseAddr(name); err == nil {
		return false
	}
	for pattern := range strings.SplitSeq(f.With["but"], ",") {
		if fits, _ := path.Match(strings.ToLower(pattern), strings.ToLower(name)); fits { // checked when it was added
			return false
		}
	}

	return true
}

// patterns checks patterns that commas separate.
func patterns(value string) error {
	for pattern := range strings.SplitSeq(value, ",") {
		if _, err := path.Match(pattern, ""); err != nil {
			return fmt.Errorf("%q: %w", pattern, err)
		}
	}

	return nil
}
