// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

// Package spec holds what a user can say about images, virtual machines, clusters and GitOps: plain
// Go types and the rules about them. The stack file and the components share it, so that a rule
// lives once and a Go caller gets the same errors as a stack file.
//
// A nil pointer means "not said": defaults fill it. Struct tags carry what the decoder, the rules,
// the JSON Schema and the reference page have in common: json (the key), default, enum, min, max.
package spec
