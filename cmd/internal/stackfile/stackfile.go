// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

// Package stackfile loads a stack's file without Pulumi, for commands that need no state: what is
// written secure stays closed, and a marker stands in its place.
package stackfile

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"gopkg.in/yaml.v3"

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
	var file struct {
		Config map[string]any `yaml:"config"`
	}
	if err := yaml.Unmarshal(text, &file); err != nil {
		return nil, fmt.Errorf("reading stack %s: %w", name, err)
	}
	s := stack.Source{Stack: name, Dir: dir, Values: map[string]string{}}
	for key, value := range file.Config {
		open, secret := closed(value)
		if secret {
			s.SecretKeys = append(s.SecretKeys, key)
		}
		if plain, ok := open.(string); ok {
			s.Values[key] = plain

			continue
		}
		encoded, err := json.Marshal(open)
		if err != nil {
			return nil, fmt.Errorf("reading stack %s: %s: %w", name, key, err)
		}
		s.Values[key] = string(encoded)
	}

	return stack.Load(s) //nolint:wrapcheck // says everything
}

// closed puts the marker in the place of every secure value, and says whether there was one.
func closed(v any) (open any, secret bool) {
	switch v := v.(type) {
	case map[string]any:
		if _, ok := v["secure"].(string); ok && len(v) == 1 {
			return Closed, true
		}
		out := map[string]any{}
		for key, value := range v {
			below, found := closed(value)
			out[key], secret = below, secret || found
		}

		return out, secret
	case []any:
		out := make([]any, 0, len(v))
		for _, value := range v {
			below, found := closed(value)
			out, secret = append(out, below), secret || found
		}

		return out, secret
	default:
		return v, false
	}
}
