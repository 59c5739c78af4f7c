// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package daemon

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"
)

// StartLimit and StopLimit bound the waits for a lab that was started, or told to stop.
const StartLimit, StopLimit = time.Minute, time.Minute

// Spawn returns the lab of the site; when none runs it starts one with command, a process that calls
// [Serve] and outlives this one. Its output goes to serve.log in the site.
func (p SiteDir) Spawn(command ...string) (Info, error) {
	if i, err := p.Info(); err == nil {
		return i, nil
	}
	if p.Locked() { // it is being started by somebody else, or it is stuck
		return p.await(nil)
	}

	if err := os.MkdirAll(string(p), 0o700); err != nil {
		return Info{}, fmt.Errorf("making the site's directory: %w", err)
	}
	log, err := os.OpenFile(p.Path(logFile), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return Info{}, fmt.Errorf("opening the lab's log: %w", err)
	}
	defer func() { _ = log.Close() }() // the lab has its own handle

	cmd := exec.Command(command[0], command[1:]...) // G204: the caller's own program
	cmd.Stdout, cmd.Stderr = log, log
	cmd.Dir = "/"
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // it outlives the command that starts it
	if err := cmd.Start(); err != nil {
		return Info{}, fmt.Errorf("starting the lab: %w", err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()

	return p.await(ended)
}

// await polls until the lab answers. ended tells that it will not.
func (p SiteDir) await(ended <-chan error) (Info, error) {
	const poll = 20 * time.Millisecond

	ctx, cancel := context.WithTimeout(context.Background(), StartLimit)
	defer cancel()
	ticker := time.NewTicker(poll)
	defer ticker.Stop()

	for {
		if i, err := p.Info(); err == nil {
			return i, nil
		}

		select {
		case <-ticker.C:
		case <-ended: //nolint:errcheck // its log says why
			if p.Locked() { // another command was faster
				ended = nil

				continue
			}

			return Info{}, fmt.Errorf("the lab did not start: %s", lastLine(p.Path(logFile)))
		case <-ctx.Done():
			return Info{}, fmt.Errorf("the lab on %s does not answer; see %s, or `lab stop` it", p, p.Path(logFile))
		}
	}
}

func lastLine(path string) string {
	data, err := os.ReadFile(path) // G304: the site's own log
	if err != nil {
		return "it left no log"
	}
	lines := bytes.Split(bytes.TrimSpace(data), []byte("\n"))

	return strings.TrimPrefix(string(lines[len(lines)-1]), "lab: ")
}

// Stop ends the running lab and returns once it has ended. It fails with [ErrNotRunning] when none runs.
func (p SiteDir) Stop() error {
	if !p.Locked() {
		return fmt.Errorf("%w on %s", ErrNotRunning, p)
	}
	if err := p.call(http.MethodPost, "/stop", &struct{}{}); err != nil {
		return err
	}

	ctx, cancel := context.WithTimeout(context.Background(), StopLimit)
	defer cancel()
	if err := p.unlocked(ctx); err != nil {
		return fmt.Errorf("the lab on %s has not stopped within %s; see %s: %w", p, StopLimit, p.Path(logFile), err)
	}

	return nil
}
