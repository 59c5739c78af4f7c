// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package cli_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/talos-proxmox/talos-proxmox/cmd/tpx/internal/cli"
)

// run runs tpx and returns its exit code and what it prints.
func run(t *testing.T, args ...string) (code int, out, errs string) {
	t.Helper()
	var stdout, stderr bytes.Buffer
	code = cli.Run(t.Context(), args, &stdout, &stderr)

	return code, stdout.String(), stderr.String()
}

func TestEveryCommandSaysWhatItDoes(t *testing.T) {
	t.Parallel()
	code, out, _ := run(t, "--help")
	assert.Zero(t, code)
	for _, name := range []string{
		"init", "check", "doctor", "drift", "adopt", "images", "charts", "access", "status", "backup", "restore", "completion",
	} {
		assert.Regexp(t, `(?m)^  `+name+` +\S`, out)
	}
}

func TestCommandsNameWhatIsMissing(t *testing.T) {
	t.Parallel()
	code, _, errs := run(t, "drift", "-C", t.TempDir(), "dev")
	assert.Equal(t, cli.ExitFailed, code)
	assert.Contains(t, errs, "there is no Pulumi.yaml in ")

	code, _, errs = run(t, "drift")
	assert.Equal(t, cli.ExitFailed, code)
	assert.Contains(t, errs, "name a stack: tpx … STACK, or --stack STACK")

	code, _, errs = run(t, "restore", "dev")
	assert.Equal(t, cli.ExitFailed, code)
	assert.Contains(t, errs, "name the snapshot: --snapshot FILE")

	code, _, errs = run(t, "drift", "dev", "--state", filepath.Join(t.TempDir(), "none.json"))
	assert.Equal(t, cli.ExitFailed, code)
	assert.Contains(t, errs, "none.json")
}

func TestCheckTellsEverythingWithLines(t *testing.T) {
	t.Parallel()
	code, out, errs := run(t, "check", "prod")
	assert.Zero(t, code, errs)
	assert.Equal(t, "stack prod: nothing is wrong with its 6 nodes\n", out)

	dir := t.TempDir()
	for name, edit := range map[string]*strings.Replacer{
		"Pulumi.yaml":     strings.NewReplacer("name: talos-proxmox", "name: mine"),
		"Pulumi.dev.yaml": strings.NewReplacer("talos-proxmox:", "mine:", "memory: 2048", "memory: plenty", "vip: 10.200.5.10", "vpi: 10.200.5.10"),
	} {
		text, err := os.ReadFile(filepath.Join("..", "..", "..", "..", name))
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(edit.Replace(string(text))), 0o600))
	}
	code, out, _ = run(t, "check", "-C", dir, "dev")
	assert.Equal(t, cli.ExitFound, code)
	assert.Regexp(t, `cluster\.vpi \(line \d+\): .*did you mean "vip"\?`, out)
	assert.Regexp(t, `defaults\.all\.memory \(line \d+\): `, out)
}

func TestStacksAreCompleted(t *testing.T) {
	t.Parallel()
	code, out, _ := run(t, "__complete", "status", "")
	assert.Zero(t, code)
	assert.Contains(t, out, "dev\nprod\n")
}
