// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

// Package addons holds the rules about what a cluster gets on top: pod network, manifests, GitOps.
package addons

import "github.com/talos-proxmox/talos-proxmox/internal/rules/scope"

// rules look at one configuration.
type rules struct{ *scope.Scope }

// Check records what is wrong with pod network, manifests and GitOps.
func Check(s *scope.Scope) {
	r := &rules{s}
	r.cni()
	r.manifests()
	r.gitops()
}
