// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

// Package versions answers questions about Talos and Kubernetes versions: which fit together, which
// may follow which, and which configuration forms a version understands. It is the only place where
// versions are written. What the Talos machinery knows is asked of it; what it does not know
// is in the tables here. docs/adding-a-version.md explains how to extend them.
package versions
