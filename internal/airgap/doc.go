// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

// Package airgap lists every image and URL that a cluster will ever pull, who pulls it, and from
// where once the mirrors are applied, so that an air-gapped site knows what its mirrors must hold.
package airgap
