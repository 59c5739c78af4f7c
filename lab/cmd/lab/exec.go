// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"syscall"

	"github.com/talos-proxmox/talos-proxmox/lab/daemon"
	"github.com/talos-proxmox/talos-proxmox/lab/env"
	"github.com/talos-proxmox/talos-proxmox/lab/tools"
)

// execute runs a command in the lab and ends with its exit code.
func execute(o options, command []string) error {
	if len(command) == 0 {
		return errors.New("exec: name a command, as in `lab exec -- pulumi up`")
	}

	lab, err := running(o)
	if err != nil {
		return err
	}
	if o.speedSet && lab.Speed != o.speed {
		return fmt.Errorf("the lab on %s runs with --speed %v; `lab stop` it before it can run with %v", o.site, lab.Speed, o.speed)
	}

	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("finding the lab's own program: %w", err)
	}
	bin, err := tools.Beside()
	if err != nil {
		return err // says what it is about
	}
	labEnv, err := env.New(lab, bin, os.Environ())
	if err != nil {
		return err // says what it is about
	}
	detach, err := labEnv.Attach(o.providers, self, os.Stderr)
	if err != nil {
		return err // says what it is about
	}
	defer detach()

	files := env.RememberStackFiles(".", command)
	defer files.ForgetSalt()

	return runCommand(o.siteDir(), command, labEnv)
}

// running returns the lab of the site, started when it does not run.
func running(o options) (daemon.Info, error) {
	self, err := os.Executable()
	if err != nil {
		return daemon.Info{}, fmt.Errorf("finding the lab's own program: %w", err)
	}

	// says what it is about
	return o.siteDir().Spawn(self, "serve", "--site", o.site, "--speed", fmt.Sprint(o.speed), "--steps", o.stepsText)
}

// runCommand runs a command with an environment, looking for it on the environment's PATH.
func runCommand(lab daemon.SiteDir, command []string, vars env.Environment) error {
	name, err := vars.LookPath(command[0])
	if err != nil {
		return err // says what to do
	}

	cmd := exec.Command(name, command[1:]...) // G204: what the user asks for
	cmd.Args[0] = command[0]
	cmd.Env = vars.List()
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

	watching := lab.Watch(cmd.Process.Pid)
	err = cmd.Wait()
	watching.End()
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
