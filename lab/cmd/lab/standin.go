// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/talos-proxmox/talos-proxmox/lab/standin"
)

// providers are the plugins that the project uses, with the versions that it pins.
func providers() map[string]string {
	return map[string]string{"proxmoxve": "6.18.1", "talos": "0.7.1", "kubernetes": "4.23.0"}
}

// gitProviders are the plugins that only a stack uses which registers its deploy key, with the versions
// that the project pins. Each that is not installed is stood in for by itself.
func gitProviders() map[string]string {
	return map[string]string{"github": "6.12.1", "gitlab": "9.5.0", "command": "1.1.3"}
}

// realProviders tells whether the genuine plugins do the work.
func realProviders(choice string) (bool, error) {
	if choice == "standin" {
		return false, nil
	}
	missing, home, err := missingPlugins(providers())
	if err != nil {
		return false, err
	}
	if len(missing) > 0 && choice == "real" {
		return false, fmt.Errorf("--providers real: %s not installed in %s; `pulumi plugin install resource NAME VERSION` does it",
			strings.Join(missing, ", "), home)
	}

	return len(missing) == 0, nil
}

// stoodIn are the names of the stand-ins to serve.
func stoodIn(real bool, choice string) ([]string, error) {
	names := slices.Collect(maps.Keys(gitProviders()))
	if !real {
		return slices.Concat(slices.Collect(maps.Keys(providers())), names), nil
	}
	if choice == "real" {
		return nil, nil
	}
	missing, _, err := missingPlugins(gitProviders())
	for i, plugin := range missing {
		missing[i], _, _ = strings.Cut(plugin, " ")
	}

	return missing, err
}

// missingPlugins are those of the wanted ones that are not installed, and where they were looked for.
func missingPlugins(wanted map[string]string) (missing []string, home string, err error) {

	if home = os.Getenv("PULUMI_HOME"); home == "" {
		user, err := os.UserHomeDir()
		if err != nil {
			return nil, "", fmt.Errorf("looking for provider plugins: %w", err)
		}
		home = filepath.Join(user, ".pulumi")
	}
	for name, version := range wanted {
		if _, err := os.Stat(filepath.Join(home, "plugins", fmt.Sprintf("resource-%s-v%s", name, version))); err != nil {
			missing = append(missing, name+" "+version)
		}
	}

	return missing, home, nil
}

// standinServers is a running child process with the stand-ins.
type standinServers struct {
	providers string // for PULUMI_DEBUG_PROVIDERS
	cmd       *exec.Cmd
	input     io.Closer
}

// startStandins starts the stand-ins as a process of their own, in the same world as the command that
// uses them, as an engine starts plugins.
func startStandins(env, names []string) (*standinServers, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("starting the stand-in providers: %w", err)
	}

	cmd := exec.Command(self, append([]string{"standin"}, names...)...) //nolint:gosec // G204: this program itself
	cmd.Env, cmd.Stderr = env, os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // the terminal's Ctrl-C is for the engine
	input, err := cmd.StdinPipe()
	if err != nil {
		return nil, fmt.Errorf("starting the stand-in providers: %w", err)
	}
	output, err := cmd.StdoutPipe()
	if err != nil {
		return nil, fmt.Errorf("starting the stand-in providers: %w", err)
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("starting the stand-in providers: %w", err)
	}

	line, err := bufio.NewReader(output).ReadString('\n')
	if err != nil {
		_ = input.Close()

		return nil, errors.Join(errors.New("the stand-in providers did not start"), cmd.Wait())
	}

	return &standinServers{providers: strings.TrimSpace(line), cmd: cmd, input: input}, nil
}

func (s *standinServers) stop() {
	_ = s.input.Close() // they end with their input
	_ = s.cmd.Wait()    // how they end is of no interest once the command has
}

// standins serves the stand-ins until standard input ends, so that none outlives whoever started it. The
// first line of its output is for PULUMI_DEBUG_PROVIDERS.
func standins(names []string) error {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()

	var (
		ports []string
		dones []<-chan error
	)
	for _, name := range names {
		port, done, err := standin.Serve(ctx, name)
		if err != nil {
			return fmt.Errorf("serving the stand-in for %s: %w", name, err)
		}
		ports, dones = append(ports, fmt.Sprintf("%s:%d", name, port)), append(dones, done)
	}
	fmt.Println(strings.Join(ports, ","))

	_, _ = io.Copy(io.Discard, os.Stdin) // its end is the signal
	cancel()

	var errs []error
	for _, done := range dones {
		errs = append(errs, <-done)
	}

	return errors.Join(errs...)
}
