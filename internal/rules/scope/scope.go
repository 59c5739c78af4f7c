// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

// Package scope holds what all rules share: the configuration they look at, the list they record in, and
// the forms that names and values must have.
package scope

import (
	"github.com/talos-proxmox/talos-proxmox/internal/check"
	"github.com/talos-proxmox/talos-proxmox/spec"
)

// Scope is one configuration that is checked.
type Scope struct {
	// Said is the configuration as it was given.
	Said spec.Config
	// Config is the configuration with all defaults.
	Config spec.Config
	// Access is how the Proxmox provider will ask, its environment included.
	Access spec.Proxmox
	// List receives the problems.
	List *check.List
}

// New returns the scope of a configuration whose problems go to the list.
func New(said spec.Config, l *check.List) *Scope {
	s := &Scope{Said: said, Config: said.WithDefaults(), List: l}
	s.Access = s.Config.Proxmox

	return s
}

// Addf records a problem at a path.
func (s *Scope) Addf(path, format string, args ...any) { s.List.Addf(path, format, args...) }
