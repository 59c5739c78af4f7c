// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

// Package tests runs the real Pulumi engine with the real program against the lab, and holds the
// rules between the layers.
package tests
