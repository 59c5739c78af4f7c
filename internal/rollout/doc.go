// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

// Package rollout changes a living cluster one node at a time: it bootstraps, upgrades, drains and retires
// nodes, and holds the gate through which everything passes that takes a node down.
//
// Every step looks at the node, acts, and verifies, so that an interrupted step can be repeated. Every wait
// is bounded by its context or by a timeout that the caller names.
package rollout
