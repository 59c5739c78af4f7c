// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package main

import (
	"bytes"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/talos-proxmox/talos-proxmox/lab/fault"
	"github.com/talos-proxmox/talos-proxmox/lab/site"
)

// TestEveryOperationCanBeNamed reads the lab's sources: what they trace is what a fault can name.
func TestEveryOperationCanBeNamed(t *testing.T) {
	t.Parallel()

	begin := regexp.MustCompile(`Begin\("([a-z]+\.[a-z]+)"`)
	spawn := regexp.MustCompile(`spawn\([^"\n]*"([a-z]+)"`)
	found := map[string]bool{}
	require.NoError(t, filepath.WalkDir(filepath.Join("..", ".."), func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		source, err := os.ReadFile(path)
		for _, m := range begin.FindAllSubmatch(source, -1) {
			found[string(m[1])] = true
		}
		for _, m := range spawn.FindAllSubmatch(source, -1) {
			found["pve."+string(m[1])] = true
		}

		return err
	}))

	var names []string
	for n := range found {
		names = append(names, n)
	}
	slices.Sort(names)
	assert.Equal(t, names, operations())
}

// TestAKillEndsTheCommandWithAllThatItStarted runs a command that starts another in a group of its
// own, as an engine starts plugins, and kills both at the second operation of a kind.
func TestAKillEndsTheCommandWithAllThatItStarted(t *testing.T) {
	dir := t.TempDir()
	var trace bytes.Buffer
	d := &daemon{options: options{site: dir}, log: slog.New(slog.DiscardHandler), commands: newCommands()}
	tr := site.NewTrace(&trace)
	d.faults = fault.New(tr, d.known)
	tr.Watch(d.killAt)
	control, err := d.control()
	require.NoError(t, err)
	t.Cleanup(func() { _ = control.Close() })

	tr.Begin("talos.apply", "node/10.0.0.1", nil)(nil) // nothing runs yet
	_, err = d.faults.Add(fault.Kill, map[string]string{"op": "talos.*", "nth": "2"})
	require.NoError(t, err)

	child := filepath.Join(dir, "child")
	ended := make(chan error, 1)
	go func() {
		env := &environ{vars: map[string]string{"PATH": os.Getenv("PATH")}}
		ended <- runCommand(d.options, []string{"sh", "-mc", "sleep 600 & echo $! >" + child + ".new; mv " + child + ".new " + child + "; wait"}, env)
	}()
	require.Eventually(t, func() bool {
		_, err := os.Stat(child)

		return err == nil && d.commands.any()
	}, time.Minute, 5*time.Millisecond)

	tr.Begin("vm.run", "vm/800", nil)(nil)
	tr.Begin("talos.apply", "node/10.0.0.1", nil)(nil)
	select {
	case err := <-ended:
		t.Fatalf("it was killed too early: %v", err)
	default:
	}
	tr.Begin("talos.bootstrap", "node/10.0.0.1", nil)(nil)
	assert.False(t, d.commands.any(), "the operation went on when the command was dead")
	assert.Equal(t, exitCode(128+int(syscall.SIGKILL)), <-ended)

	content, err := os.ReadFile(child)
	require.NoError(t, err)
	pid, err := strconv.Atoi(strings.TrimSpace(string(content)))
	require.NoError(t, err)
	require.Eventually(t, func() bool { return !alive(pid) }, time.Minute, 5*time.Millisecond)
	assert.Contains(t, trace.String(), `"op":"fault.kill"`)
}

// alive tells whether a process runs; one that nobody has waited for does not.
func alive(pid int) bool {
	stat, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
	if err != nil {
		return syscall.Kill(pid, 0) == nil
	}
	fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))

	return fields[0] != "Z"
}
