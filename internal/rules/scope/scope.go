// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

// Package scope holds what all rules share: the configuration they look at, the list they record in, and
// the forms that names and values must have.
package scope

import (
	"reflect"

	"github.com/talos-proxmox/talos-proxmox/internal/check"
	"github.com/talos-proxmox/talos-proxmox/spec"
)

// Scope holds one configuration while it is checked.
type Scope struct {
	// Said is the configuration as it was given.
	Said spec.Config
	// Config is the configuration with all defaults.
	Config spec.Config
	// Access is how the Proxmox provider will ask, its environment included.
	Access spec.Proxmox
	// Files reads a file of the project by its path; nil where there are none to read.
	Files func(path string) ([]byte, error)
	// List receives the problems.
	List *check.List
}

// New returns the scope of a configuration whose problems go to the list.
func New(said spec.Config, l *check.List) *Scope {
	s := &Scope{Said: said, Config: said.WithDefaults(), List: l}
	s.Access = s.Config.Proxmox
	if reflect.DeepEqual(said, s.Config) {
		s.forgetDefaults()
	}

	return s
}

// forgetDefaults takes out of what was said the blocks in which it counts whether something was written: a component gives a
// configuration with its defaults, where that cannot be told.
func (s *Scope) forgetDefaults() {
	s.Said.Lifecycle = spec.Lifecycle{}
	s.Said.Kubernetes.Proxy = nil
	s.Said.Talos.KubePrism, s.Said.Talos.HostDNS = nil, nil
	s.Said.Manifests.CoreDNS = nil
}

// Addf records a problem at a path.
func (s *Scope) Addf(path, format string, args ...any) { s.List.Addf(path, format, args...) }
