// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

// Package machineconfig renders the Talos machine configuration of every node from plain settings,
// and checks it with Talos's own validation before a node sees it. It is pure: the same input gives
// the same bytes, nothing is dialled, and files are read through the input only.
package machineconfig
