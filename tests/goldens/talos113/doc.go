// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

// Package goldens holds the recorded machine configurations of contract v1.13 against the machinery
// of that Talos release, which is another than the program's own.
package goldens
