// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

// Package charts makes and serves the Helm repositories of a site, each under the host it has in
// life. Where a Go module carries the genuine chart (Cilium does), that is what is packed; where
// none does (Flux's community chart), a stand-in is generated around the controllers' genuine CRDs,
// and says so in its description and in an annotation. Both are read from modules when the tools are
// built; nothing of them is part of this repository.
package charts
