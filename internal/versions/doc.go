// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

// Package versions answers questions about Talos and Kubernetes versions: which fit together, which
// may follow which, and which configuration forms a version understands. The tables behind the
// answers are those of the Talos machinery.
package versions
