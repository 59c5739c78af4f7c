// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package tests_test

import (
	"bytes"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestAReleaseThatAKillLeftPendingIsInstalledAgain kills the engine and everything that it started in the middle of Flux's
// installation, which leaves Helm's note of a release that is pending-install. The next up installs it without hands.
func TestAReleaseThatAKillLeftPendingIsInstalledAgain(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	c := s.up("small", s.small(alone()...))
	file := s.small(alone("  talos-proxmox:lifecycle:\n", "  talos-proxmox:gitops: {provider: flux, chart: {version: 2.18.2}, "+
		"git: {url: https://gitea.example.com/lab/demo.git, path: clusters/small}}\n  talos-proxmox:lifecycle:\n")...)
	notes := func(status string) int {
		var found objects
		c.kubectl(&found, "get", "secrets", "-n", "flux-system", "-l", "owner=helm,name=flux2,status="+status)

		return len(found.Items)
	}

	cmd := s.command("pulumi", "up", "--stack", "small", "--config-file", file, "--yes", "--skip-preview", "--non-interactive")
	var out bytes.Buffer
	cmd.Dir, cmd.Stdout, cmd.Stderr = s.project, &out, &out
	require.NoError(t, cmd.Start())
	require.Eventually(t, func() bool { return notes("pending-install") == 1 }, 3*time.Minute, 50*time.Millisecond,
		"the release is being installed")
	killWithDescendants(t, cmd.Process.Pid)
	require.Error(t, cmd.Wait())
	require.Equal(t, 1, notes("pending-install"), "the kill was in the middle of the installation:\n%s", out.String())

	s.unlock("small")
	r := s.must("pulumi", "up", "--stack", "small", "--config-file", file, "--yes", "--skip-preview", "--non-interactive")
	assert.Contains(t, r.all(), "release flux2 was left pending-install by an earlier run: it is installed again, over what is there")
	assert.Equal(t, 1, notes("deployed"))
	assert.Zero(t, notes("pending-install"))
	s.must("pulumi", "refresh", "--stack", "small", "--config-file", file, "--clear-pending-creates", "--yes", "--skip-preview",
		"--non-interactive")
	s.must("pulumi", "preview", "--stack", "small", "--config-file", file, "--expect-no-changes", "--non-interactive")
}

// killWithDescendants kills a process and everything that it started, as a machine that loses its power does.
func killWithDescendants(t *testing.T, pid int) {
	t.Helper()
	require.NoError(t, syscall.Kill(pid, syscall.SIGSTOP)) // so that it starts nothing meanwhile
	listed, err := exec.CommandContext(t.Context(), "ps", "-A", "-o", "pid=,ppid=").Output()
	require.NoError(t, err)
	children := map[int][]int{}
	for line := range strings.Lines(string(listed)) {
		var pair []int
		for _, field := range strings.Fields(line) {
			n, err := strconv.Atoi(field)
			require.NoError(t, err)
			pair = append(pair, n)
		}
		children[pair[1]] = append(children[pair[1]], pair[0])
	}
	for all := []int{pid}; len(all) > 0; all = all[1:] {
		all = append(all, children[all[0]]...)
		_ = syscall.Kill(all[0], syscall.SIGKILL) // it may have ended
	}
}
