// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

// Package pve reads and checks values as Proxmox VE does, and holds its errors.
package pve
