// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

// Package talos stands in for the talos plugin 0.7.1: it generates secrets and configurations with
// Talos machinery and speaks the Talos API and the Image Factory's HTTP.
package talos
