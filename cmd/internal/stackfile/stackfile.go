// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

// Package stackfile loads a stack's file without Pulumi, for commands that need no state: what is
// written secure stays closed, and a marker stands in its place.
package stackfile

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/talos-proxmox/talos-proxmox/stack"
)

// Closed stands where the file has a value that is written secure.
const Closed = "closed"

// Names are the stacks that have a file in the directory, sorted.
func Names(dir string) ([]string, error) {
	files, err := filepath.Glob(filepath.Join(dir, "Pulumi.*.yaml"))
	if err != nil {
		return nil, fmt.Errorf("looking for stack files: %w", err)
	}
	var names []string
	for _, f := range files {
		names = append(names, strings.TrimSuffix(strings.TrimPrefix(filepath.Base(f), "Pulumi."), ".yaml"))
	}

	return names, nil
}

// Load reads and checks the stack's file in the directory.
func Load(dir, name string) (*stack.Stack, error) {
	text, err := os.ReadFile(filepath.Join(dir, "Pulumi."+name+".yaml"))
	if err != nil {
		return nil, fmt.Errorf("reading stack %s: %w", name, err)
	}
	s, err := stack.SourceOf(name, text, func(string) string { return Closed })
	if err != nil {
		return nil, err //nolint:wrapcheck // names the stack
	}
	s.Dir = dir

	return stack.Load(s) //nolint:wrapcheck // says everything
}
