// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package kube

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"
)

const (
	// stopTimeout is how long the process gets to end by itself.
	stopTimeout = 10 * time.Second
	// logTail is how many lines of the log an error shows.
	logTail = 12
)

// process runs lab-kubernetes. It ends when its stdin closes, so it never outlives us.
type process struct {
	cmd   *exec.Cmd
	stdin io.WriteCloser
	log   string
	addr  string

	answers  chan answer
	ordering sync.Mutex

	ended chan struct{} // closed when it has ended
	err   error         // why, once ended is closed
	once  sync.Once
}

// answer decodes a line of the process's stdout.
type answer struct {
	Address  string `json:"address"`
	Snapshot string `json:"snapshot"`
	Error    string `json:"error"`
}

// startProcess starts the control plane of dir and returns once it has taken its port.
func startProcess(ctx context.Context, binary, dir string) (*process, error) {
	log := filepath.Join(dir, logFile)
	if err := os.Rename(log, log+".old"); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("keeping the old log: %w", err)
	}
	out, err := os.OpenFile(log, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return nil, fmt.Errorf("opening its log: %w", err)
	}
	defer func() { _ = out.Close() }() // the process has a copy

	cmd := exec.Command(binary, "control-plane", "--config", filepath.Join(dir, configFile))
	cmd.Stderr = out
	cmd.Env = environment()
	// An interrupt typed at our terminal is ours to handle.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("starting %s: %w", binaryName(binary), err)
	}

	p := &process{cmd: cmd, stdin: stdin, log: log, answers: make(chan answer, 1), ended: make(chan struct{})}
	go p.watch(stdout)

	err = p.during(ctx, func(ctx context.Context) error {
		select {
		case a := <-p.answers:
			p.addr = a.Address

			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	})
	if err != nil {
		return nil, errors.Join(err, p.stop())
	}

	return p, nil
}

// environment returns ours without proxies: the control plane talks to loopback only. It trades some
// time for memory, unless ours says otherwise.
func environment() []string {
	env := []string{"GOGC=50"}
	for _, entry := range os.Environ() {
		name, _, _ := strings.Cut(strings.ToUpper(entry), "=")
		if !strings.HasSuffix(name, "_PROXY") {
			env = append(env, entry)
		}
	}

	return env
}

// watch hands on what the process answers until it ends.
func (p *process) watch(stdout io.Reader) {
	lines := bufio.NewScanner(stdout)
	for lines.Scan() {
		var a answer
		if json.Unmarshal(lines.Bytes(), &a) != nil {
			continue
		}
		select {
		case p.answers <- a:
		default: // nobody waits for it
		}
	}
	_, _ = io.Copy(io.Discard, stdout) // a full pipe would block the process

	p.err = p.cmd.Wait()
	close(p.ended)
}

// during runs f and fails with the end of the log when f does, or as soon as the process ends.
func (p *process) during(ctx context.Context, f func(context.Context) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)

	go func() {
		select {
		case <-p.ended:
			cancel(fmt.Errorf("the process ended: %w", p.err))
		case <-ctx.Done():
		}
	}()

	err := f(ctx)
	if err == nil {
		return nil
	}

	return fmt.Errorf("%w; the end of %s:\n%s", err, p.log, tail(p.log, logTail))
}

// stop ends the process; it may be called more than once.
func (p *process) stop() error {
	var killed error

	p.once.Do(func() {
		_ = p.stdin.Close() // the process takes it as the order to end; it may have ended already

		select {
		case <-p.ended:
		case <-time.After(stopTimeout):
			killed = p.cmd.Process.Kill()
		}
	})
	<-p.ended

	return killed
}

// tail returns the last lines of a file.
func tail(file string, lines int) string {
	raw, err := os.ReadFile(file)
	if err != nil {
		return err.Error()
	}

	all := strings.Split(strings.TrimSpace(string(raw)), "\n")

	return strings.Join(all[max(0, len(all)-lines):], "\n")
}
