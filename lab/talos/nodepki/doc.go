// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

// Package nodepki issues the certificates of a node's API.
package nodepki
