// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package stack_test

import (
	"errors"
	"flag"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"github.com/talos-proxmox/talos-proxmox/spec"
	"github.com/talos-proxmox/talos-proxmox/stack"
)

var update = flag.Bool("update", false, "rewrite the expected problems, then fail")

// ruleCase describes one stack that breaks a rule: the base stack with Set laid over it; null removes.
type ruleCase struct {
	Name string         `yaml:"name"`
	Set  map[string]any `yaml:"set"`
	Want []string       `yaml:"want"`
}

// TestRules breaks every rule once and demands the exact problems.
func TestRules(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/rules/*.yaml")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		var cases []ruleCase
		require.NoError(t, yaml.Unmarshal([]byte(read(t, file)), &cases), file)
		changed := false
		for i, c := range cases {
			got := problemsOf(t, overlay(t, c.Set))
			if *update && !slices.Equal(got, c.Want) {
				cases[i].Want, changed = got, true
			}
			assert.Equal(t, c.Want, got, "%s: %s", filepath.Base(file), c.Name)
			assert.NotEmpty(t, c.Want, "%s: %s", filepath.Base(file), c.Name)
		}
		if changed {
			text, err := yaml.Marshal(cases)
			require.NoError(t, err)
			require.NoError(t, os.WriteFile(file, text, 0o600))
		}
	}
}

// problemsOf loads a stack and returns its problems without their lines.
func problemsOf(t *testing.T, text string) []string {
	t.Helper()
	_, err := load(t, text)
	if err == nil {
		return nil
	}
	var invalid *spec.InvalidError
	require.True(t, errors.As(err, &invalid), "%v", err)
	var all []string
	for _, p := range invalid.Problems {
		assert.Positive(t, p.Line, "no line for %s", p.Path)
		p.Line = 0
		all = append(all, p.String())
	}

	return all
}

// overlay lays settings over the base stack.
func overlay(t *testing.T, set map[string]any) string {
	t.Helper()
	var file map[string]any
	require.NoError(t, yaml.Unmarshal([]byte(read(t, "testdata/base.yaml")), &file))
	config, ok := file["config"].(map[string]any)
	require.True(t, ok)
	for key, value := range set {
		key = stack.Project + ":" + key
		config[key] = laidOver(config[key], value)
		if config[key] == nil {
			delete(config, key)
		}
	}
	text, err := yaml.Marshal(file)
	require.NoError(t, err)

	return string(text)
}

func laidOver(below, above any) any {
	b, okBelow := below.(map[string]any)
	a, okAbove := above.(map[string]any)
	if !okBelow || !okAbove {
		return above
	}
	out := maps.Clone(b)
	for key, value := range a {
		if value == nil {
			delete(out, key)

			continue
		}
		out[key] = laidOver(out[key], value)
	}

	return out
}

// TestBaseIsFine makes sure that the rule cases break nothing but what they set.
func TestBaseIsFine(t *testing.T) {
	t.Parallel()
	assert.Empty(t, problemsOf(t, read(t, "testdata/base.yaml")))
}
