// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package tests_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"
)

// previewJob holds what the example's job runs, and with which variables.
type previewJob struct {
	Env   map[string]string
	Steps []struct{ Name, Run string }
}

// readPreviewJob reads the example for pull requests.
func readPreviewJob(t *testing.T, root string) previewJob {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, "examples", "pull-requests", "preview.yaml"))
	require.NoError(t, err)
	var workflow struct{ Jobs map[string]previewJob }
	require.NoError(t, yaml.Unmarshal(text, &workflow))
	require.Contains(t, workflow.Jobs, "preview")

	return workflow.Jobs["preview"]
}

// command returns the job's command, with its variables, where nothing outside can be reached.
func (j previewJob) command(stack string) []string {
	args := []string{
		"env", "HTTPS_PROXY=http://127.0.0.1:9", "HTTP_PROXY=http://127.0.0.1:9", "STACK=" + stack,
		"PROXMOX_VE_API_TOKEN=" + j.Env["PROXMOX_VE_API_TOKEN"],
	}
	var lines []string
	for _, step := range j.Steps {
		if step.Name == "plan" {
			lines = append(lines, step.Run)
		}
	}

	return append(args, "bash", "-euo", "pipefail", "-c", strings.Join(lines, "\n"))
}

// TestPreviewInAPullRequest runs the example's job on a stack that is up: with a token that opens nothing
// and without a network it plans nothing, and then an edit.
func TestPreviewInAPullRequest(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.create("dev")
	job := readPreviewJob(t, s.project)

	without := s.try("env", "-u", "PROXMOX_VE_API_TOKEN", "pulumi", "preview", "--stack", "dev", "--non-interactive")
	assert.NotZero(t, without.code)
	assert.Contains(t, without.all(), "proxmox.apiToken (line 4): there are no credentials: set PROXMOX_VE_API_TOKEN to user@realm!name=uuid")

	s.must("pulumi", "up", "--stack", "dev", "--yes", "--skip-preview", "--non-interactive")
	same := s.must(job.command("dev")...).all()
	assert.NotContains(t, same, "to update")
	assert.NotContains(t, same, "to create")

	file := filepath.Join(s.project, "Pulumi.dev.yaml")
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(file, []byte(strings.ReplaceAll(string(text), "memory: 2048", "memory: 4096")), 0o600))
	edited := s.must(job.command("dev")...).all()
	assert.Contains(t, edited, "dedicated: 2048 => 4096")
	assert.Contains(t, edited, "unchanged")

	require.NoError(t, os.WriteFile(file, []byte(strings.ReplaceAll(string(text), "memory: 2048", "memory: plenty")), 0o600))
	wrong := s.try(job.command("dev")...)
	assert.NotZero(t, wrong.code)
	assert.Contains(t, wrong.all(), "defaults.all.memory")
}
