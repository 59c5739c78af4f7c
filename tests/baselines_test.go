// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package tests_test

import (
	"compress/gzip"
	"encoding/json"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// baselines returns states of the dev stack that earlier versions of the program wrote (`make baseline`), oldest
// first. The last one is of the newest version: where a change of the program is meant to change a plan of an unchanged
// stack, the changelog says so, and a baseline of the new version is added.
func baselines() []string {
	return []string{"2026-11-21-dev", "2026-11-22-dev", "2026-11-22-authorities-dev"}
}

// TestStatesOfEarlierVersions previews the dev stack with states of earlier versions: what is on Proxmox VE, in
// Talos and in Kubernetes stays as it is, whatever the program remembers in another form. Configurations may be
// written anew, which reboots nothing unless the configuration asks for it.
func TestStatesOfEarlierVersions(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	file := s.stackFile("Pulumi.dev.yaml")
	s.create("dev")
	all := baselines()
	for i, baseline := range all {
		s.must("pulumi", "stack", "import", "--stack", "dev", "--file", s.unpack(baseline))
		plan := s.must("pulumi", "preview", "--json", "--stack", "dev", "--config-file", file, "--non-interactive")
		var preview struct {
			Steps []struct {
				Op  string `json:"op"`
				URN string `json:"urn"`
			} `json:"steps"`
			Summary map[string]int `json:"changeSummary"`
		}
		require.NoError(t, json.Unmarshal([]byte(plan.stdout), &preview), plan.all())
		assert.Greater(t, preview.Summary["same"], 20, "the program knows the resources of the state again")
		if i == len(all)-1 {
			assert.Equal(t, []string{"same"}, slices.Collect(maps.Keys(preview.Summary)), "what the newest version wrote needs nothing done")
		}
		for _, step := range preview.Steps {
			kind := strings.Split(step.URN, "::")[2]
			kind = kind[strings.LastIndex(kind, "$")+1:]
			switch {
			case step.Op == "same":
			case kind == "pulumi:index:Stash", strings.HasPrefix(kind, "pulumi:providers:"), strings.HasPrefix(kind, "talos-proxmox:"):
			case kind == "talos:machine/configurationApply:ConfigurationApply" && step.Op == "update":
			default:
				t.Errorf("state of %s: %s would be done to %s", baseline, step.Op, step.URN)
			}
		}
	}
}

// unpack writes the state of an earlier version to a file.
func (s *site) unpack(baseline string) string {
	s.t.Helper()

	packed, err := os.Open(filepath.Join("testdata", "baselines", baseline+".json.gz"))
	require.NoError(s.t, err)
	defer func() { _ = packed.Close() }()
	reader, err := gzip.NewReader(packed)
	require.NoError(s.t, err)
	state, err := io.ReadAll(reader)
	require.NoError(s.t, err)
	// The lab keeps charts in its site, wherever that is; a user's are beside the stack file.
	text := strings.ReplaceAll(string(state), `"./.lab/charts/`, `"`+filepath.Join(s.dir, "charts")+`/`)
	file := filepath.Join(s.t.TempDir(), "state.json")
	require.NoError(s.t, os.WriteFile(file, []byte(text), 0o600))

	return file
}
