// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package stack

import (
	"errors"

	"github.com/talos-proxmox/talos-proxmox/internal/check"
	"github.com/talos-proxmox/talos-proxmox/internal/preflight"
	"github.com/talos-proxmox/talos-proxmox/spec"
)

// Check renders every node's Talos configuration with throw-away secrets and returns what Talos itself would refuse of it,
// at the settings and lines that caused it. It needs no engine and no network; charts are not read.
func (s *Stack) Check() error {
	var problems check.List
	preflight.Talos(s.Config, s.readFile, &problems)

	return s.Locate(problems.Err(s.subject))
}

// Locate turns the problems of an error about the stack's configuration into ones about its file: each at the place where
// its value is written, with the line. Other errors it returns as they are.
func (s *Stack) Locate(err error) error {
	var invalid *spec.InvalidError
	if s.locate == nil || !errors.As(err, &invalid) {
		return err
	}
	var found check.List
	for _, p := range invalid.Problems {
		found.Add(s.locate(p))
	}

	return found.Err(invalid.Subject)
}
