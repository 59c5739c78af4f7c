// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

// Package disks holds what Talos keeps on a node's disks, and how Linux and Talos name and describe them.
package disks
