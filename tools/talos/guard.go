// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package main

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"syscall"
)

// guard runs the site in namespaces and takes away what would outlive them. The kernel ends every process, mount and link of
// a site when its first process dies, so only control groups and an empty folder remain for the guard. It is in a session of
// its own, where no ^C reaches it: whoever started it ends it by closing its standard input, also by being killed.
func guard(args []string) error {
	if os.Geteuid() != 0 {
		return errors.New("namespaces, mounts and control groups need root")
	}
	if _, err := syscall.Setsid(); err != nil && !errors.Is(err, syscall.EPERM) { // a leader of a group has one already
		return fmt.Errorf("beginning a session: %w", err)
	}
	signal.Ignore(syscall.SIGHUP, syscall.SIGINT, syscall.SIGTERM)
	if err := sweepControlGroups(); err != nil {
		return err
	}
	work, err := os.MkdirTemp("", "talos-nodes-")
	if err != nil {
		return fmt.Errorf("making a folder to work in: %w", err)
	}
	defer os.RemoveAll(work) // the socket; all else in it lies on a tmpfs of the site
	socket := filepath.Join(work, "socket")
	listener, err := net.ListenUnix("unix", &net.UnixAddr{Name: socket, Net: "unix"})
	if err != nil {
		return fmt.Errorf("listening for those who talk to nodes: %w", err)
	}
	file, err := listener.File()
	if err != nil {
		return fmt.Errorf("listening for those who talk to nodes: %w", err)
	}

	site := exec.Command("/proc/self/exe", append([]string{work}, args...)...)
	site.Env = []string{
		stageVariable + "=site", guardVariable + "=" + strconv.Itoa(os.Getpid()), consoleVariable + "=" + os.Getenv(consoleVariable),
		"PATH=" + os.Getenv("PATH"),
	}
	site.Stderr, site.ExtraFiles = os.Stderr, []*os.File{file}
	site.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags: syscall.CLONE_NEWPID | syscall.CLONE_NEWNS | syscall.CLONE_NEWNET | syscall.CLONE_NEWIPC | syscall.CLONE_NEWUTS,
		Pdeathsig:  syscall.SIGKILL,
	}
	ready, err := site.StdoutPipe()
	if err != nil {
		return fmt.Errorf("starting the site: %w", err)
	}
	if err := site.Start(); err != nil {
		return fmt.Errorf("starting the site: %w", err)
	}
	if n, _ := ready.Read(make([]byte, 1)); n > 0 {
		fmt.Println(socket)
	}
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		_ = site.Process.Kill()
	}()
	err = site.Wait()
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) && !exit.Exited() {
		err = nil // killed, as it was meant to be
	}

	return errors.Join(err, removeControlGroups(os.Getpid()))
}
