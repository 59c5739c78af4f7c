// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

// Package stackfile loads a stack's configuration for commands: with its secrets through the Pulumi CLI,
// or from the file alone, with stand-ins in place of what is closed.
package stackfile

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/talos-proxmox/talos-proxmox/cmd/tpx/internal/pulumi"
	"github.com/talos-proxmox/talos-proxmox/stack"
)

// Opened says how a configuration was read.
type Opened struct {
	// Closed is why secrets stayed closed, and stand-ins are in their places; nil where none is.
	Closed error
}

// Explain adds to an error why secrets stayed closed, since the error may come of a stand-in.
func (o Opened) Explain(err error) error {
	if o.Closed == nil || err == nil {
		return err
	}

	return fmt.Errorf("%w\n(its secrets are closed, and stand-ins are in their places: %w)", err, o.Closed)
}

// Load reads and checks the stack's configuration. Where its file holds secrets, or imports from
// environments, the Pulumi CLI opens them; where it cannot (nobody is logged in, the passphrase is not at
// hand, the stack was never made), secrets get stand-ins of the form that the rules ask for.
func Load(ctx context.Context, p pulumi.Project, cli pulumi.CLI) (*stack.Stack, Opened, error) {
	path := cli.ConfigFile
	if path == "" {
		path = p.StackFile(cli.Stack)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, Opened{}, fmt.Errorf("reading stack %s: %w", cli.Stack, err)
	}
	var opened Opened
	if needsPulumi(text) {
		source, err := Open(ctx, p, cli)
		if err == nil {
			source.File = path
			s, err := stack.Load(source)

			return s, opened, err
		}
		opened.Closed = err
	}
	source, err := stack.SourceOf(cli.FileStack(), text, StandIn)
	if err != nil {
		return nil, opened, err
	}
	source.Project, source.Dir, source.File = p.Name, p.Dir, path
	s, err := stack.Load(source)

	return s, opened, err
}

// Open returns the stack's configuration as Pulumi has it, secrets and environments opened.
func Open(ctx context.Context, p pulumi.Project, cli pulumi.CLI) (stack.Source, error) {
	text, err := cli.Run(ctx, "config", "--json", "--show-secrets")
	if err != nil {
		return stack.Source{}, err
	}
	var config map[string]struct {
		Value  string `json:"value"`
		Secret bool   `json:"secret"`
	}
	if err := json.Unmarshal(text, &config); err != nil {
		return stack.Source{}, fmt.Errorf("reading the configuration of stack %s: %w", cli.Stack, err)
	}
	s := stack.Source{Project: p.Name, Stack: cli.FileStack(), Dir: p.Dir, Values: map[string]string{}}
	for key, v := range config {
		s.Values[key] = v.Value
		if v.Secret {
			s.SecretKeys = append(s.SecretKeys, key)
		}
	}
	slices.Sort(s.SecretKeys)

	return s, nil
}

// needsPulumi reports whether a stack file has something that only Pulumi can open.
func needsPulumi(text []byte) bool {
	var file struct {
		Environment yaml.Node `yaml:"environment"`
	}
	_ = yaml.Unmarshal(text, &file) // errors in the file are reported when it is read

	return !file.Environment.IsZero() || strings.Contains(string(text), "secure:")
}
