// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package tests_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestTemplateMakesAProject has `pulumi new` make a project of another name from the template, `tpx init` write its
// stack file, and looks at the plan of it. A mistake is told with its line, whatever the project is called.
func TestTemplateMakesAProject(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	tpx := s.build("cmd/tpx")
	made := filepath.Join(t.TempDir(), "mine")
	s.must("pulumi", "new", filepath.Join(s.root, "template"), "--generate-only", "--yes", "--name", "mine",
		"--description", "My own", "--dir", made)
	module, err := os.ReadFile(filepath.Join(made, "go.mod"))
	require.NoError(t, err)
	assert.Contains(t, string(module), "module mine\n")
	readme, err := os.ReadFile(filepath.Join(made, "README.md"))
	require.NoError(t, err)
	assert.Contains(t, string(readme), "# mine\n")

	s.copyProject(made, s.buildAgainstTheRepository(made))
	s.must(tpx, "init", "dev", "--yes", "--proxmox-version", "8")
	s.must("pulumi", "stack", "init", "dev")
	plan := s.must("pulumi", "preview", "--stack", "dev", "--non-interactive")
	assert.Contains(t, plan.all(), "proxmoxve:VM:VirtualMachine")
	assert.Zero(t, s.try(tpx, "doctor", "dev", "--live").code)

	file := filepath.Join(s.project, "Pulumi.dev.yaml")
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(file, []byte(strings.Replace(string(text), "memory: 4096", "memory: plenty", 1)), 0o600))
	refused := s.try("pulumi", "preview", "--stack", "dev", "--non-interactive")
	assert.NotZero(t, refused.code)
	assert.Regexp(t, `defaults\.all\.memory \(line \d+\): `, refused.all())
}

// buildAgainstTheRepository compiles a project with the library as it is in the repository, whose modules are those of
// the example that requires it.
func (s *site) buildAgainstTheRepository(dir string) string {
	s.t.Helper()
	example := filepath.Join(s.root, "examples", "own-program")
	module, err := os.ReadFile(filepath.Join(example, "go.mod"))
	require.NoError(s.t, err)
	sums, err := os.ReadFile(filepath.Join(example, "go.sum"))
	require.NoError(s.t, err)
	require.NoError(s.t, os.WriteFile(filepath.Join(dir, "go.mod"), module, 0o600))
	require.NoError(s.t, os.WriteFile(filepath.Join(dir, "go.sum"), sums, 0o600))
	out := filepath.Join(s.t.TempDir(), "program")
	for _, command := range [][]string{
		{"go", "mod", "edit", "-replace", "github.com/talos-proxmox/talos-proxmox=" + s.root}, {"go", "build", "-mod=mod", "-o", out, "."},
	} {
		cmd := exec.CommandContext(s.t.Context(), command[0], command[1:]...)
		cmd.Dir = dir
		output, err := cmd.CombinedOutput()
		require.NoErrorf(s.t, err, "%v: %s", command, output)
	}

	return out
}
