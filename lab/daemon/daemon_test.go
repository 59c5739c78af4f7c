// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package daemon_test

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/talos-proxmox/talos-proxmox/lab/daemon"
)

// serve runs a lab as `lab serve` does; the channel gets how it ended.
func serve(t *testing.T, dir string) <-chan error {
	t.Helper()

	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	done := make(chan struct{})
	go func() {
		defer close(done)
		ended <- daemon.Serve(ctx, daemon.Options{Dir: dir})
	}()
	t.Cleanup(func() {
		cancel()
		<-done
	})
	// Spawn waits for the lab that is starting; the command would only run if there were none.
	require.Eventually(t, daemon.SiteDir(dir).Locked, daemon.StartLimit, daemon.StartLimit/10000)
	_, err := daemon.SiteDir(dir).Spawn("false")
	require.NoError(t, err)

	return ended
}

func TestASiteHasOneLabUntilItIsStopped(t *testing.T) {
	t.Parallel()

	dir := t.TempDir()
	siteDir := daemon.SiteDir(dir)
	require.ErrorIs(t, siteDir.Stop(), daemon.ErrNotRunning)

	ended := serve(t, dir)
	i, err := siteDir.Info()
	require.NoError(t, err)
	assert.Equal(t, dir, i.Site)
	assert.InEpsilon(t, float64(daemon.DefaultSpeed), i.Speed, 0)
	s, err := siteDir.Status()
	require.NoError(t, err)
	assert.NotEmpty(t, s.Hosts)

	_, err = daemon.Open(t.Context(), daemon.Options{Dir: dir})
	require.EqualError(t, err, fmt.Sprintf("a lab already runs on %s (process %d); `lab stop` ends it", dir, os.Getpid()))

	require.NoError(t, siteDir.Stop())
	require.NoError(t, <-ended)
	assert.False(t, siteDir.Locked())
	_, err = siteDir.Info()
	require.EqualError(t, err, "no lab runs on "+dir+"; `lab exec -- COMMAND` starts it")
}

// A lab that is killed leaves its socket and the file of its lock.
func TestADeadLabIsInNobodysWay(t *testing.T) {
	t.Parallel()

	dir := t.TempDir()
	siteDir := daemon.SiteDir(dir)
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: filepath.Join(dir, "lab.sock"), Net: "unix"})
	require.NoError(t, err)
	l.SetUnlinkOnClose(false)
	require.NoError(t, l.Close())
	require.NoError(t, os.WriteFile(siteDir.Path("lab.lock"), []byte("4711\n"), 0o600))

	_, err = siteDir.Info()
	require.EqualError(t, err, "no lab runs on "+dir+"; `lab exec -- COMMAND` starts it")
	require.ErrorIs(t, siteDir.Stop(), daemon.ErrNotRunning)
	serve(t, dir)
	require.NoError(t, siteDir.Stop())
}

func TestALabThatDoesNotStartSaysWhy(t *testing.T) {
	t.Parallel()

	dir := filepath.Join(t.TempDir(), "site")
	_, err := daemon.SiteDir(dir).Spawn("sh", "-c", "echo first; echo 'lab: the reason' >&2; exit 1")
	require.EqualError(t, err, "the lab did not start: the reason")

	_, err = daemon.SiteDir(dir).Spawn(filepath.Join(dir, "no-such-program"))
	require.ErrorContains(t, err, "starting the lab: ")
}

// What stands where the control socket has to be is named.
func TestATakenSocketIsNamed(t *testing.T) {
	t.Parallel()

	dir := t.TempDir()
	socket := filepath.Join(dir, "lab.sock")
	require.NoError(t, os.MkdirAll(filepath.Join(socket, "something"), 0o700))
	_, err := daemon.Open(t.Context(), daemon.Options{Dir: dir})
	require.EqualError(t, err, "opening the lab's control socket: "+socket+" is in the way: remove it")
	// A process that another test starts at this moment has the lock's file open until it runs its program.
	assert.Eventually(t, func() bool { return !daemon.SiteDir(dir).Locked() }, 10*time.Second, 10*time.Millisecond, "a lab that failed holds nothing")
}
