// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

// Package chaos strings together edits, kills, faults, refreshes and work by hand on a cluster in the lab,
// chosen by a seed, and judges what happened from the lab's trace, the site and the stack's state alone.
// It imports nothing of the product, so the judge cannot share the product's mistakes.
//
// A run is a script, one step a line (see [ParseScript]). A seed always makes the same script, and a
// script that fails can be shortened with [Shrink] and run again from a file.
package chaos
