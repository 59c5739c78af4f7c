// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

// Package stack reads a stack file, Pulumi.<stack>.yaml, into a [spec.Config]: strictly, with
// defaults, roles, sizes, host pool and pools expanded into nodes, and with every problem in one
// report. It is pure Go and knows nothing of Pulumi but how it hands configuration to a program.
//
// What a node says is looked up from the most specific place to the most general: its own entry in
// nodes, its pool, its host's entry in proxmox.hosts (datastore and zone), its size, the defaults of
// its role, the defaults of all nodes, the built-in default. Maps and blocks are merged key by key,
// lists are replaced.
package stack
