// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

// Package pulumi runs the Pulumi CLI on one stack of a project, whatever its backend, its secrets
// provider and its name are: all that is left to the CLI.
package pulumi

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// CLI runs commands on one stack.
type CLI struct {
	// Dir is the project directory, the one with Pulumi.yaml.
	Dir string
	// Stack is the stack's name, with organization and project where the backend has such; empty for the
	// selected one.
	Stack string
	// ConfigFile is the stack file where it is not Pulumi.<stack>.yaml.
	ConfigFile string
	// Env holds variables that commands get besides the environment.
	Env []string
}

// Run runs a command such as "stack export" and returns its standard output.
func (c CLI) Run(ctx context.Context, command string, args ...string) ([]byte, error) {
	words := append(strings.Fields(command), "--non-interactive")
	if c.Stack != "" {
		words = append(words, "--stack", c.Stack)
	}
	if c.ConfigFile != "" && takesConfigFile(command) {
		words = append(words, "--config-file", c.ConfigFile)
	}
	cmd := exec.CommandContext(ctx, "pulumi", append(words, args...)...)
	var stdout, stderr bytes.Buffer
	cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = c.Dir, append(os.Environ(), c.Env...), &stdout, &stderr
	switch err := cmd.Run(); {
	case errors.Is(err, exec.ErrNotFound):
		return nil, errors.New("there is no `pulumi` on PATH: install the Pulumi CLI, https://www.pulumi.com/docs/install/")
	case err != nil:
		// A document for programs may hold secrets, and says nothing to people.
		if document := strings.TrimSpace(stdout.String()); !strings.HasPrefix(document, "{") {
			stderr.WriteString("\n" + document)
		}

		return nil, fmt.Errorf("pulumi %s: %w\n%s", command, err, strings.TrimSpace(stderr.String()))
	}

	return stdout.Bytes(), nil
}

// takesConfigFile reports whether the command reads a stack file.
func takesConfigFile(command string) bool {
	return !strings.HasPrefix(command, "stack") && !strings.HasPrefix(command, "state") && command != "about"
}

// FileStack returns the stack's name as files have it: without organization and project.
func (c CLI) FileStack() string { return c.Stack[strings.LastIndex(c.Stack, "/")+1:] }

// Project holds what Pulumi.yaml says of a project.
type Project struct {
	// Dir has Pulumi.yaml in it.
	Dir  string `yaml:"-"`
	Name string `yaml:"name"`
	// StackConfigDir is where stack files are, below Dir.
	StackConfigDir string `yaml:"stackConfigDir"`
}

// FindProject reads the Pulumi.yaml in dir, or in the nearest directory around it, as Pulumi does.
func FindProject(dir string) (Project, error) {
	at, err := filepath.Abs(dir)
	if err != nil {
		return Project{}, fmt.Errorf("looking for Pulumi.yaml: %w", err)
	}
	for {
		for _, name := range []string{"Pulumi.yaml", "Pulumi.yml"} {
			text, err := os.ReadFile(filepath.Join(at, name))
			if err != nil {
				continue
			}
			p := Project{Dir: at}
			if err := yaml.Unmarshal(text, &p); err != nil {
				return p, fmt.Errorf("%s is not YAML: %w", filepath.Join(at, name), err)
			}
			if p.Name == "" {
				return p, fmt.Errorf("%s names no project: write name: …", filepath.Join(at, name))
			}

			return p, nil
		}
		if filepath.Dir(at) == at {
			return Project{}, fmt.Errorf("there is no Pulumi.yaml in %s or above it: name the project directory with --dir", dir)
		}
		at = filepath.Dir(at)
	}
}

// StackFile returns the path of a stack's file.
func (p Project) StackFile(stack string) string {
	return filepath.Join(p.Dir, p.StackConfigDir, "Pulumi."+stack[strings.LastIndex(stack, "/")+1:]+".yaml")
}

// Stacks returns the names of the stacks that have a file, sorted.
func (p Project) Stacks() ([]string, error) {
	files, err := filepath.Glob(filepath.Join(p.Dir, p.StackConfigDir, "Pulumi.*.yaml"))
	if err != nil {
		return nil, fmt.Errorf("looking for stack files: %w", err)
	}
	var names []string
	for _, f := range files {
		names = append(names, strings.TrimSuffix(strings.TrimPrefix(filepath.Base(f), "Pulumi."), ".yaml"))
	}
	slices.Sort(names)

	return names, nil
}
