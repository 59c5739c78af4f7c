// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

// Package cluster describes a living cluster: its members, the interfaces to its Talos and Kubernetes APIs,
// the annotations that mark its nodes, and how to poll them. It knows nothing of Pulumi.
package cluster
