// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package stack

import (
	"context"
	"errors"

	"github.com/talos-proxmox/talos-proxmox/internal/check"
	"github.com/talos-proxmox/talos-proxmox/internal/preflight"
	"github.com/talos-proxmox/talos-proxmox/spec"
)

// Check renders every node's Talos configuration with throw-away secrets, and the charts that are in the project's cache. It
// returns what Talos itself would refuse, and what is wrong with charts and manifests, at the settings and lines that caused it.
// It needs no engine and no network.
func (s *Stack) Check(ctx context.Context) error {
	var problems check.List
	preflight.Check(ctx, s.source.request(s.Config), &problems)

	return s.Locate(problems.Err("stack " + s.source.Stack))
}

// Locate turns the problems of an error about the stack's configuration into ones about its file: each at the place where
// its value is written, with the line. Other errors, and those joined to such a one, it returns as they are.
func (s *Stack) Locate(err error) error {
	if s.locate == nil {
		return err
	}
	var (
		found   check.List
		subject string
		others  []error
	)
	for _, one := range check.Split(err) {
		var invalid *spec.InvalidError
		if !errors.As(one, &invalid) {
			others = append(others, one)

			continue
		}
		subject = invalid.Subject
		for _, p := range invalid.Problems {
			found.Add(s.locate(p))
		}
	}
	switch {
	case subject == "":
		return err
	case len(others) == 0:
		return found.Err(subject)
	default:
		return errors.Join(append([]error{found.Err(subject)}, others...)...)
	}
}
