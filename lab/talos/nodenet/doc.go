// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

// Package nodenet is a node's network: its links, the addresses that it has on them, and the listeners there.
package nodenet
