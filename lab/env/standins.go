// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package env

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"

	"github.com/talos-proxmox/talos-proxmox/lab/standin"
	"github.com/talos-proxmox/talos-proxmox/lab/standin/wire"
)

// Attach gives the environment its providers: the genuine plugins need nothing, the stand-ins are started
// as a process of their own in this environment, as an engine starts plugins. program is the command lab,
// which calls [ServeStandins]; its complaints go to stderr. detach ends the stand-ins.
func (e Environment) Attach(choice Choice, program string, stderr io.Writer) (detach func(), err error) {
	names, err := choice.standins(e)
	if err != nil {
		return nil, err
	}
	if len(names) == 0 {
		return func() {}, nil
	}

	s, err := startStandins(program, names, e.List(), stderr)
	if err != nil {
		return nil, err
	}
	e["PULUMI_DEBUG_PROVIDERS"] = s.providers

	return s.stop, nil
}

// standins runs a child process with the stand-ins.
type standins struct {
	providers string // for PULUMI_DEBUG_PROVIDERS
	cmd       *exec.Cmd
	input     io.Closer
}

func startStandins(program string, names, env []string, stderr io.Writer) (*standins, error) {
	cmd := exec.Command(program, append([]string{"standin"}, names...)...)
	cmd.Env, cmd.Stderr = env, stderr
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

	return &standins{providers: strings.TrimSpace(line), cmd: cmd, input: input}, nil
}

func (s *standins) stop() {
	_ = s.input.Close() // they end with their input
	_ = s.cmd.Wait()    // how they end is of no interest once the command has
}

// ServeStandins serves the named stand-ins until standard input ends, so that none outlives whoever started it. The
// first line of its output is for PULUMI_DEBUG_PROVIDERS. Where $LAB_CALLS names a file, it has in the end how often each
// method of each stand-in was called, as JSON.
func ServeStandins(names []string) error {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()

	var (
		ports []string
		dones []<-chan error
	)
	calls := map[string]*wire.Calls{}
	for _, name := range names {
		calls[name] = &wire.Calls{}
		port, done, err := standin.Serve(ctx, name, calls[name])
		if err != nil {
			return fmt.Errorf("serving the stand-in for %s: %w", name, err)
		}
		ports, dones = append(ports, fmt.Sprintf("%s:%d", name, port)), append(dones, done)
	}
	fmt.Println(strings.Join(ports, ","))

	_, _ = io.Copy(io.Discard, os.Stdin) // its end is the signal
	cancel()

	errs := []error{writeCalls(os.Getenv("LAB_CALLS"), calls)}
	for _, done := range dones {
		errs = append(errs, <-done)
	}

	return errors.Join(errs...)
}

// writeCalls writes how often each method of each provider was called, where a file is named for it.
func writeCalls(file string, calls map[string]*wire.Calls) error {
	if file == "" {
		return nil
	}
	counts := map[string]map[string]int{}
	for name, counted := range calls {
		counts[name] = counted.Counts()
	}
	text, err := json.Marshal(counts)
	if err != nil {
		return fmt.Errorf("LAB_CALLS: %w", err)
	}
	if err := os.WriteFile(file, text, 0o600); err != nil {
		return fmt.Errorf("LAB_CALLS: %w", err)
	}

	return nil
}
