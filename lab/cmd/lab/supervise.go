// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"syscall"
	"time"
)

// superviseGrace is how long a supervised program gets to end by itself.
const superviseGrace = 5 * time.Second

// supervise runs a program that ends when standard input does, or with a signal: whoever holds the
// other end takes it along, however it ends itself.
func supervise(command []string) error {
	if len(command) == 0 {
		return errors.New("supervise: name a command")
	}
	cmd := exec.Command(command[0], command[1:]...) // G204: the lab's own programs
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("running %s: %w", command[0], err)
	}

	over := make(chan os.Signal, 1)
	signal.Notify(over, syscall.SIGINT, syscall.SIGTERM)
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin) // its end is the order
		over <- syscall.SIGTERM
	}()
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()

	select {
	case err := <-ended:
		return err // whoever supervises says what it is about
	case <-over:
	}
	_ = cmd.Process.Signal(syscall.SIGTERM) // it has ended when this fails
	select {
	case <-ended: //nolint:errcheck // it was told to end
	case <-time.After(superviseGrace):
		_ = cmd.Process.Kill() // as above
		<-ended                //nolint:errcheck // as above
	}

	return nil
}
