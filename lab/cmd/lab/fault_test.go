// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/talos-proxmox/talos-proxmox/lab/daemon"
	"github.com/talos-proxmox/talos-proxmox/lab/env"
	"github.com/talos-proxmox/talos-proxmox/lab/fault"
)

// TestAKillEndsTheCommandWithAllThatItStarted runs a command that starts another in a group of its
// own, as an engine starts plugins, and kills both at the second operation of a kind.
func TestAKillEndsTheCommandWithAllThatItStarted(t *testing.T) {
	dir := t.TempDir()
	d, err := daemon.Open(t.Context(), daemon.Options{Dir: dir})
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, d.Close()) })
	tr := d.Site().Trace()

	tr.Begin("talos.apply", "node/10.0.0.1", nil)(nil) // nothing runs yet
	_, err = d.Faults().Add(fault.Kill, map[string]string{"op": "talos.*", "nth": "2"})
	require.NoError(t, err)

	child := filepath.Join(dir, "child")
	ended := make(chan error, 1)
	go func() {
		env := env.Environment{"PATH": os.Getenv("PATH")}
		ended <- runCommand(daemon.SiteDir(dir), []string{"sh", "-mc", "sleep 600 & echo $! >" + child + ".new; mv " + child + ".new " + child + "; wait"}, env)
	}()
	require.Eventually(t, func() bool {
		_, err := os.Stat(child)

		return err == nil && d.Commands() == 1
	}, time.Minute, 5*time.Millisecond)

	tr.Begin("vm.run", "vm/800", nil)(nil)
	tr.Begin("talos.apply", "node/10.0.0.1", nil)(nil)
	select {
	case err := <-ended:
		t.Fatalf("it was killed too early: %v", err)
	default:
	}
	tr.Begin("talos.bootstrap", "node/10.0.0.1", nil)(nil)
	assert.Zero(t, d.Commands(), "the operation went on when the command was dead")
	assert.Equal(t, exitCode(128+int(syscall.SIGKILL)), <-ended)

	content, err := os.ReadFile(child)
	require.NoError(t, err)
	pid, err := strconv.Atoi(strings.TrimSpace(string(content)))
	require.NoError(t, err)
	require.Eventually(t, func() bool { return !alive(pid) }, time.Minute, 5*time.Millisecond)
	trace, err := os.ReadFile(daemon.SiteDir(dir).Trace())
	require.NoError(t, err)
	assert.Contains(t, string(trace), `"op":"fault.kill"`)
}

// alive reports whether a process runs; one that nobody has waited for does not.
func alive(pid int) bool {
	stat, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
	if err != nil {
		return syscall.Kill(pid, 0) == nil
	}
	fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))

	return fields[0] != "Z"
}
