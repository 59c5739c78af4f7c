// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

// Package engine knows the Pulumi engine that runs the program: whether it still runs, and which stack file it read.
package engine

// addressVariable names the variable in which the engine hands the program its address.
const addressVariable = "PULUMI_ENGINE"
