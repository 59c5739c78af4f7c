// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// startLimit bounds the wait for a lab that was just started.
const startLimit = time.Minute

// execute runs a command in the lab and ends with its exit code.
func execute(o options, command []string) error {
	if len(command) == 0 {
		return errors.New("exec: name a command, as in `lab exec -- pulumi up`")
	}

	i, err := running(o)
	if err != nil {
		return err
	}
	if o.speedSet && i.Speed != o.speed {
		return fmt.Errorf("the lab on %s runs with --speed %v; `lab stop` it before it can run with %v", o.site, i.Speed, o.speed)
	}
	env, err := environment(o, i)
	if err != nil {
		return err
	}

	real, err := realProviders(o.providers)
	if err != nil {
		return err
	}
	names, err := stoodIn(real, o.providers)
	if err != nil {
		return err
	}
	if len(names) > 0 {
		servers, err := startStandins(env.list(), names)
		if err != nil {
			return err
		}
		defer servers.stop()
		env.set("PULUMI_DEBUG_PROVIDERS", servers.providers)
	}

	files := rememberStackFiles(".")
	defer files.forgetSalt()

	return runCommand(o, command, env)
}

// runCommand runs a command with an environment, looking for it on the environment's PATH.
func runCommand(o options, command []string, env *environ) error {
	name, err := lookPath(command[0], env.get("PATH"))
	if err != nil {
		return err
	}

	cmd := exec.Command(name, command[1:]...) //nolint:gosec // G204: what the user asks for
	cmd.Args[0] = command[0]
	cmd.Env = env.list()
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr

	// The terminal sends its signals to the command too; it decides what they mean.
	signals := make(chan os.Signal, 8)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	defer signal.Stop(signals)

	if err := cmd.Start(); err != nil {
		return fmt.Errorf("running %s: %w", command[0], err)
	}
	go func() {
		for s := range signals {
			if s != syscall.SIGINT || !isTerminal(os.Stdin) {
				_ = cmd.Process.Signal(s) // it has ended when this fails
			}
		}
	}()

	watching := watchForKill(o, cmd.Process.Pid)
	err = cmd.Wait()
	watching.end()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		if status, ok := exit.Sys().(syscall.WaitStatus); ok && status.Signaled() {
			return exitCode(128 + int(status.Signal()))
		}

		return exitCode(exit.ExitCode())
	}
	if err != nil {
		return fmt.Errorf("running %s: %w", command[0], err)
	}

	return nil
}

func isTerminal(f *os.File) bool {
	info, err := f.Stat()

	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

func lookPath(name, path string) (string, error) {
	if strings.Contains(name, string(filepath.Separator)) {
		return name, nil
	}
	for _, dir := range filepath.SplitList(path) {
		file := filepath.Join(dir, name)
		if info, err := os.Stat(file); err == nil && !info.IsDir() && info.Mode()&0o111 != 0 {
			return file, nil
		}
	}

	return "", fmt.Errorf("there is no command %q on the PATH; `make tools` builds the project's own", name)
}

// running returns the lab of the site, started when it does not run.
func running(o options) (info, error) {
	var i info
	err := call(o, http.MethodGet, "/info", &i)
	if err == nil {
		return i, nil
	}
	if locked(o) { // it is being started by somebody else, or it is stuck
		return await(o, nil)
	}

	if err := os.MkdirAll(o.site, 0o700); err != nil {
		return i, fmt.Errorf("making the site's directory: %w", err)
	}
	log, err := os.OpenFile(o.path("serve.log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return i, fmt.Errorf("opening the lab's log: %w", err)
	}
	defer func() { _ = log.Close() }() // the lab has its own handle

	self, err := os.Executable()
	if err != nil {
		return i, fmt.Errorf("starting the lab: %w", err)
	}
	cmd := exec.Command(self, "serve", "--site", o.site, "--speed", fmt.Sprint(o.speed)) //nolint:gosec // G204: this program itself
	cmd.Stdout, cmd.Stderr = log, log
	cmd.Dir = "/"
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // it outlives the command that starts it
	if err := cmd.Start(); err != nil {
		return i, fmt.Errorf("starting the lab: %w", err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()

	return await(o, ended)
}

// await polls until the lab answers. ended tells that it will not.
func await(o options, ended <-chan error) (info, error) {
	const poll = 20 * time.Millisecond

	ctx, cancel := context.WithTimeout(context.Background(), startLimit)
	defer cancel()
	ticker := time.NewTicker(poll)
	defer ticker.Stop()

	for {
		var i info
		if err := call(o, http.MethodGet, "/info", &i); err == nil {
			return i, nil
		}

		select {
		case <-ticker.C:
		case <-ended:
			if locked(o) { // another command was faster
				ended = nil

				continue
			}

			return info{}, fmt.Errorf("the lab did not start: %s", lastLine(o.path("serve.log")))
		case <-ctx.Done():
			return info{}, fmt.Errorf("the lab on %s does not answer; see %s, or `lab stop` it", o.site, o.path("serve.log"))
		}
	}
}

func lastLine(path string) string {
	data, err := os.ReadFile(path) //nolint:gosec // G304: the site's own log
	if err != nil {
		return "it left no log"
	}
	lines := bytes.Split(bytes.TrimSpace(data), []byte("\n"))

	return strings.TrimPrefix(string(lines[len(lines)-1]), "lab: ")
}
