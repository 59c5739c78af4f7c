// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

// Package standin serves the providers proxmoxve, talos and kubernetes where the genuine plugins
// cannot be had. They take their schemas from the SDKs' own types and are clients of the real
// protocols, so whatever they manage may be a lab or the real thing.
package standin
