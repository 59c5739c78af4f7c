// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package standin_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// workspace holds a Pulumi project of the test's own.
type workspace struct {
	t        *testing.T
	dir, cli string
	env      []string
}

func newWorkspace(t *testing.T, env ...string) workspace {
	t.Helper()

	bin, err := filepath.Abs(filepath.Join("..", "..", "bin"))
	require.NoError(t, err)
	if _, err := os.Stat(filepath.Join(bin, "pulumi")); err != nil {
		t.Skip("SKIPPED, bin/pulumi is missing: run `make tools`")
	}

	dir := t.TempDir()
	program, err := filepath.Abs(filepath.Join("testdata", "program"))
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "Pulumi.yaml"),
		[]byte("name: test\nruntime: go\nmain: "+program+"\n"), 0o600))
	require.NoError(t, os.Mkdir(filepath.Join(dir, "state"), 0o700))

	w := workspace{t: t, dir: dir, cli: filepath.Join(bin, "pulumi")}
	w.env = append(os.Environ(),
		"PATH="+bin+string(os.PathListSeparator)+os.Getenv("PATH"), "PULUMI_HOME="+filepath.Join(dir, "home"),
		"PULUMI_BACKEND_URL=file://"+filepath.Join(dir, "state"), "PULUMI_CONFIG_PASSPHRASE=test",
		"PULUMI_SKIP_UPDATE_CHECK=true", "PULUMI_DISABLE_AUTOMATIC_PLUGIN_ACQUISITION=true",
		"HTTPS_PROXY=", "HTTP_PROXY=")
	w.env = append(w.env, env...)
	w.run("stack", "init", "dev")

	return w
}

func (w workspace) try(args ...string) (string, error) {
	w.t.Helper()

	cmd := exec.CommandContext(context.WithoutCancel(w.t.Context()), w.cli, append(args, "--non-interactive")...)
	cmd.Dir, cmd.Env = w.dir, w.env
	out, err := cmd.CombinedOutput()

	return string(out), err
}

func (w workspace) run(args ...string) string {
	w.t.Helper()

	out, err := w.try(args...)
	require.NoError(w.t, err, out)

	return out
}

// The real engine drives the stand-ins through the whole life of a stack.
func TestEngine(t *testing.T) {
	t.Parallel()

	pve := newFakePVE(t)
	w := newWorkspace(t, "TEST_PVE="+pve.URL, "TEST_TOKEN="+token,
		fmt.Sprintf("PULUMI_DEBUG_PROVIDERS=proxmoxve:%d,talos:%d", serve(t, "proxmoxve"), serve(t, "talos")))

	preview := w.run("preview")
	assert.Contains(t, preview, "5 to create")
	assert.Empty(t, pve.took(), "a preview changes nothing")

	up := w.run("up", "--yes", "--skip-preview")
	assert.Equal(t, "local:iso/talos.iso,media=cdrom", pve.config(800)["ide0"])
	w.run("preview", "--expect-no-changes")
	w.run("refresh", "--yes", "--expect-no-changes")

	state := w.run("stack", "export")
	for what, text := range map[string]string{"state": state, "output": up + preview} {
		assert.NotContains(t, text, "11111111-2222", "the API token is in plain text in the "+what)
		assert.NotContains(t, text, "SECRET-KEY", "the SSH key is in plain text in the "+what)
	}

	pve.set(800, "cores", "7")
	drift := w.run("refresh", "--yes", "--diff")
	assert.Contains(t, drift, "cores")
	w.run("up", "--yes", "--skip-preview")
	assert.Equal(t, "1", pve.config(800)["cores"], "up undoes what was changed by hand")

	w.run("destroy", "--yes", "--skip-preview")
	assert.Nil(t, pve.config(800))
	w.run("up", "--yes", "--skip-preview")
}
