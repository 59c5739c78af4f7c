// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package lab_test

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/talos-proxmox/talos-proxmox/lab"
	"github.com/talos-proxmox/talos-proxmox/lab/fault"
	"github.com/talos-proxmox/talos-proxmox/lab/site"
	"github.com/talos-proxmox/talos-proxmox/lab/tools"
)

// failing plays a test that only remembers why it failed.
type failing struct {
	testing.TB
	why string
}

func (f *failing) Helper() {}

func (f *failing) Fatalf(format string, args ...any) {
	f.why = fmt.Sprintf(format, args...)
	runtime.Goexit()
}

// failure returns why a test that starts a lab fails at once.
func failure(t *testing.T, opts ...lab.Option) string {
	t.Helper()

	f := &failing{TB: t}
	done := make(chan struct{})
	go func() {
		defer close(done)
		lab.Start(f, opts...)
	}()
	<-done

	return f.why
}

func TestAMissingToolIsSaidInPlainWords(t *testing.T) {
	t.Parallel()

	bin := filepath.Join(t.TempDir(), "bin")
	require.NoError(t, os.Mkdir(bin, 0o700))
	assert.Equal(t, "lab: "+bin+"/lab is missing: run `make tools`", failure(t, lab.Tools(bin)))

	for _, name := range []string{tools.Lab, tools.Kubernetes} {
		require.NoError(t, os.WriteFile(filepath.Join(bin, name), nil, 0o600))
	}
	assert.Equal(t, "lab: "+bin+"/pulumi is missing: run `make tools`", failure(t, lab.Tools(bin)))
	assert.Equal(t, "lab: Speed: must be above 0, got -1", failure(t, lab.Speed(-1)))
}

// A command has the lab as its world; an exit code is no failure.
func TestCommandsRunInTheLab(t *testing.T) {
	t.Parallel()

	l := lab.Start(t, lab.Hosts(site.HostDef{Name: "pve1", Cores: 8, MemoryMiB: 16384}))
	dir := t.TempDir()

	r := l.Exec(dir, "sh", "-c", "pwd; echo $LAB_SITE; exit 3")
	assert.Equal(t, lab.Result{Stdout: dir + "\n" + l.Dir() + "\n", Code: 3}, r)

	status := l.Exec(dir, "lab", "status")
	assert.Zero(t, status.Code, status.Stderr)
	assert.Contains(t, status.Stdout, "pve1", "the command lab reaches the same lab")
	require.Len(t, l.Status().Hosts, 1)

	_, err := l.Faults().Add(fault.HostDown, map[string]string{"host": "pve2"})
	require.ErrorContains(t, err, `host-down: host: "pve2" fits none of pve1`)
	_, err = l.Faults().Add(fault.HostDown, map[string]string{"host": "pve1"})
	require.NoError(t, err)
	assert.Contains(t, l.Exec(dir, "lab", "fault", "list").Stdout, "host-down host=pve1")
	assert.Contains(t, l.Exec(dir, "curl", "-s", "-S", "https://pve1.example.com:8006/").Stderr, "502")
}
