// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

// Package charts makes and serves the Helm repositories of a site, each under the host it has in
// life. Where a Go module carries the genuine chart (Cilium does), that is what is packed; where
// none does, there is a stand-in that says so in its description and in an annotation: for Flux's
// community chart one around the controllers' genuine CRDs, for others what stacks see of them. The
// Gateway API's definitions are the genuine ones. All are read from modules when the tools are built;
// nothing of them is part of this repository.
package charts
