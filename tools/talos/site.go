// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// gateway stands for the site's own address in the network of its nodes; nothing leads out of it.
const gateway = "10.0.0.254"

// runSite runs as the first process of a site: it makes the network, the registry and the nodes, and starts a node again that
// reboots.
func runSite(work string, args []string) error {
	binaries, err := filepath.Abs(args[0])
	if err != nil {
		return err
	}
	guard, err := strconv.Atoi(os.Getenv(guardVariable))
	if err != nil {
		return fmt.Errorf("%s: %w", guardVariable, err)
	}
	for _, m := range []mount{
		{"", "/", "", unix.MS_REC | unix.MS_PRIVATE, ""},
		{"proc", "/proc", "proc", 0, ""},
		{"tmpfs", work, "tmpfs", 0, "mode=755"},
	} {
		if err := m.do(); err != nil {
			return err
		}
	}
	if err := buildRoot(filepath.Join(work, "root"), binaries); err != nil {
		return err
	}
	if err := ip("link set lo up", "link add br0 type bridge", "addr add "+gateway+"/24 dev br0", "link set br0 up"); err != nil {
		return err
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	if err := serveImages(gateway+":5000", images(binaries, self)); err != nil {
		return err
	}
	go relayConnections()
	for i, arg := range args[1:] {
		name, address, ok := strings.Cut(arg, "=")
		if !ok {
			return fmt.Errorf("%q is not NAME=ADDRESS", arg)
		}
		n := &node{work: work, guard: guard, name: name, address: address, index: i + 1, binaries: binaries}
		if err := n.prepare(); err != nil {
			return err
		}
		go n.keepRunning()
	}
	fmt.Println("ready")
	select {} // until the guard kills it
}

// ip runs commands of iproute2.
func ip(commands ...string) error {
	for _, c := range commands {
		if out, err := exec.Command("ip", strings.Fields(c)...).CombinedOutput(); err != nil {
			return fmt.Errorf("ip %s: %w: %s", c, err, out)
		}
	}

	return nil
}

// node describes one node of the site.
type node struct {
	work, binaries, name, address string
	guard, index                  int
}

func (n *node) dir() string { return filepath.Join(n.work, n.name) }

// prepare makes the folders that stay over a reboot.
func (n *node) prepare() error {
	for _, d := range volumes {
		if err := os.MkdirAll(filepath.Join(n.dir(), "volumes", d), 0o755); err != nil {
			return fmt.Errorf("making a volume: %w", err)
		}
	}

	for _, plugin := range []string{"bridge", "loopback", "host-local"} {
		if err := copyFile(filepath.Join(n.binaries, plugin), filepath.Join(n.dir(), "volumes/opt/cni/bin", plugin)); err != nil {
			return err
		}
	}

	return os.MkdirAll(filepath.Join(n.dir(), "root"), 0o755)
}

// keepRunning starts the node, and again when it reboots. The kernel says so by the signal that ends its first process.
func (n *node) keepRunning() {
	for {
		err := n.run()
		exit := (*exec.ExitError)(nil)
		reboots := errors.As(err, &exit) && exit.Sys().(syscall.WaitStatus).Signal() == syscall.SIGHUP
		fmt.Fprintf(os.Stderr, "talos-nodes: %s ended: %v\n", n.name, err)
		if !reboots {
			return
		}
		time.Sleep(time.Second)
	}
}

func (n *node) run() error {
	command := exec.Command("/proc/self/exe", n.dir(), filepath.Join(n.work, "root"))
	command.Env = []string{
		stageVariable + "=node", "NODE_NAME=" + n.name, "NODE_ADDRESS=" + n.address, "PATH=" + os.Getenv("PATH"),
		"NODE_MAC=" + fmt.Sprintf("bc:24:11:00:00:%02x", n.index),
	}
	log, err := os.Create(filepath.Join(n.work, n.name+".log"))
	if err != nil {
		return err
	}
	defer log.Close()
	go relay(log.Name(), n.name)
	command.Stdout, command.Stderr = log, log
	command.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags: syscall.CLONE_NEWPID | syscall.CLONE_NEWNS | syscall.CLONE_NEWNET | syscall.CLONE_NEWIPC | syscall.CLONE_NEWUTS,
	}
	wait, err := command.StdinPipe() // the node waits for its link and its control groups
	if err != nil {
		return err
	}
	if err := command.Start(); err != nil {
		return fmt.Errorf("starting: %w", err)
	}
	err = errors.Join(joinControlGroup(n.guard, n.name, command.Process.Pid), n.link(command.Process.Pid))
	if err != nil {
		_ = command.Process.Kill()
	}
	_ = wait.Close()

	return errors.Join(err, command.Wait())
}

// link gives the node a card in the site's network.
func (n *node) link(pid int) error {
	host := fmt.Sprintf("veth%d", n.index)
	_ = ip("link del " + host) // of before a reboot, if it is still there

	return ip(
		fmt.Sprintf("link add %s type veth peer name eth0 netns %d", host, pid),
		fmt.Sprintf("link set %s master br0 up", host),
	)
}

// relay prints a node's console where that is asked for.
func relay(path, name string) {
	if os.Getenv(consoleVariable) == "" {
		return
	}
	f, err := os.Open(path)
	if err != nil {
		return
	}
	defer f.Close()
	for {
		if n, _ := io.Copy(&prefixed{name: name}, f); n == 0 {
			time.Sleep(200 * time.Millisecond)
		}
	}
}

// prefixed writes lines to standard error behind a name.
type prefixed struct{ name string }

func (p *prefixed) Write(content []byte) (int, error) {
	for line := range strings.Lines(string(content)) {
		fmt.Fprintf(os.Stderr, "%s: %s\n", p.name, strings.TrimRight(line, "\n"))
	}

	return len(content), nil
}
