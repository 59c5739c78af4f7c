// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

// Package talos holds the rules about Talos and Kubernetes.
package talos

import "github.com/talos-proxmox/talos-proxmox/internal/rules/scope"

// rules look at one configuration.
type rules struct{ *scope.Scope }

// Check records what is wrong with the settings of Talos and Kubernetes.
func Check(s *scope.Scope) {
	r := &rules{s}
	r.versions()
	r.talos()
	r.registries()
	r.kubernetes()
}
