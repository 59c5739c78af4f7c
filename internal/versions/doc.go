// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

// Package versions answers questions about Talos and Kubernetes versions: which fit together, which
// may follow which, and which configuration forms a version understands. It is the one place where a
// version of anything stands. What the Talos machinery knows is asked of it; what it does not know
// stands in the tables here. docs/adding-a-version.md is the way through them.
package versions
