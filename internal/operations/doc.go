// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

// Package operations is what happens to a living cluster: looking at its health, letting one node
// at a time go down, upgrading and retiring nodes. It talks to the Talos API and to the Kubernetes
// API and knows nothing of Pulumi.
//
// Every step looks at the node, acts, and verifies, so that an interrupted step can be repeated;
// every wait is bounded by its context or by a timeout that the caller names.
package operations
