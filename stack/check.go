// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package stack

import (
	"errors"

	"github.com/talos-proxmox/talos-proxmox/internal/check"
	"github.com/talos-proxmox/talos-proxmox/internal/image"
	"github.com/talos-proxmox/talos-proxmox/internal/machineconfig"
	"github.com/talos-proxmox/talos-proxmox/spec"
)

// Check renders every node's Talos configuration with throw-away secrets and returns what Talos itself would refuse of it,
// at the settings and lines that caused it. It needs no engine and no network; charts are not read.
func (s *Stack) Check() error {
	var problems check.List
	in := machineconfig.Input{Config: s.Config, Installer: map[string]string{}, ReadFile: s.readFile}
	for _, n := range s.Nodes {
		img := s.Image(n)
		schematic, err := image.Resolve(img, *s.Talos.Version, s.readFile)
		if err != nil {
			problems.Addf(check.Key("nodes", n.Name)+".image", "%s", err)

			continue
		}
		in.Installer[n.Name] = image.Installer(img, schematic.ID, *s.Talos.Version)
	}
	machineconfig.Check(in, &problems)

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
