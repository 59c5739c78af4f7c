// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

// Package machineconfig reads a machine configuration as a node of a given Talos version does.
package machineconfig
