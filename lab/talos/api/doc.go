// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

// Package api serves the Talos gRPC API of a node: the machine, storage, time, image, lifecycle and COSI services,
// with the roles of their callers and calls that are forwarded to other nodes.
package api
