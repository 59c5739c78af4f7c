// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

// Package proxmoxve stands in for the proxmoxve plugin 6.18.1 (bpg's provider 0.69.1): it checks what
// that checks and makes the same calls of the Proxmox VE API in the same order.
package proxmoxve
