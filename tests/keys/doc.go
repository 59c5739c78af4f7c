// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

// Package keys tests the stack file's keys: each one that can be written changes what a stack leads to.
package keys
