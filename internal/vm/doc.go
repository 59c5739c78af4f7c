// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

// Package vm knows what Proxmox VE and its Pulumi provider do with a virtual machine: where
// drives go, and which edits would replace a VM or lose data.
package vm
