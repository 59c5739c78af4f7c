// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

// Package fault is what can be made to go wrong with a site. A fault has a kind, says whom it hits, and
// strikes a number of times or until it is removed; the parts of the lab ask for it where it would
// happen in life.
//
// A nil [*Set] is a site on which nothing goes wrong.
package fault
