// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// becomeNode runs as the first process of a node: it makes what a container engine makes for a privileged container, and
// then becomes machined.
func becomeNode(dir, root string) error {
	if _, err := io.Copy(io.Discard, os.Stdin); err != nil { // closed when link and control groups are there
		return err
	}
	if err := unix.Unshare(unix.CLONE_NEWCGROUP); err != nil {
		return fmt.Errorf("entering a namespace of control groups: %w", err)
	}
	name, address := os.Getenv("NODE_NAME"), os.Getenv("NODE_ADDRESS")
	if err := unix.Sethostname([]byte(name)); err != nil {
		return fmt.Errorf("setting the host name: %w", err)
	}
	err := ip("link set lo up", "link set eth0 address "+os.Getenv("NODE_MAC"), "addr add "+address+"/24 dev eth0",
		"link set eth0 up", "route add default via "+gateway)
	if err != nil {
		return err
	}
	if err := mountAll(dir, root); err != nil {
		return err
	}
	if err := dropCapabilities(); err != nil {
		return err
	}
	null, err := os.Open("/dev/null")
	if err == nil {
		err = unix.Dup2(int(null.Fd()), 0)
	}
	if err != nil {
		return err
	}

	return unix.Exec("/sbin/init", []string{"/sbin/init"}, []string{
		"PLATFORM=container", "TALOSSKU=2CPU-2048RAM", "PATH=/usr/sbin:/usr/bin:/sbin:/bin", "HOSTNAME=" + name,
	})
}

// mountAll makes the node's file systems and enters them.
func mountAll(dir, root string) error {
	at := func(path string) string { return filepath.Join(dir, "root", path) }
	mounts := []mount{
		{"", "/", "", unix.MS_REC | unix.MS_PRIVATE, ""},
		{root, at(""), "", unix.MS_BIND | unix.MS_REC, ""},
		{"proc", at("proc"), "proc", 0, ""},
		{"sysfs", at("sys"), "sysfs", 0, ""},
		{"tmpfs", at("dev"), "tmpfs", 0, "mode=755"},
		{"tmpfs", at("run"), "tmpfs", 0, "mode=755"},
		{"tmpfs", at("tmp"), "tmpfs", 0, "mode=1777"},
		{"tmpfs", at("system"), "tmpfs", 0, "mode=755"},
	}
	for _, m := range mounts {
		if err := m.do(); err != nil {
			return err
		}
	}
	for _, step := range []func() error{
		func() error { return mountVolumes(dir, at) },
		func() error { return makeDevices(at) },
		func() error { return mountControlGroups(at) },
		func() error { return shieldKernel(dir, at) },
		func() error { return pivot(at("")) },
	} {
		if err := step(); err != nil {
			return err
		}
	}

	return nil
}

func mountVolumes(dir string, at func(string) string) error {
	for _, v := range volumes {
		if err := os.MkdirAll(at(v), 0o755); err != nil {
			return fmt.Errorf("making a mount point: %w", err)
		}
		if err := (mount{source: filepath.Join(dir, "volumes", v), target: at(v), flags: unix.MS_BIND}).do(); err != nil {
			return err
		}
	}
	// A container engine gives each container its own.
	for f, content := range map[string]string{
		"etc/resolv.conf": "", "etc/hosts": "127.0.0.1 localhost\n", "etc/hostname": os.Getenv("NODE_NAME") + "\n",
	} {
		own := filepath.Join(dir, filepath.Base(f))
		if err := writeFile(own, content); err != nil {
			return err
		}
		if err := (mount{source: own, target: at(f), flags: unix.MS_BIND}).do(); err != nil {
			return err
		}
	}

	return nil
}

func makeDevices(at func(string) string) error {
	for _, d := range []string{"dev/pts", "dev/shm", "dev/mqueue"} {
		if err := os.Mkdir(at(d), 0o755); err != nil {
			return fmt.Errorf("making %s: %w", d, err)
		}
	}
	for name, number := range map[string][2]uint32{
		"null": {1, 3}, "zero": {1, 5}, "full": {1, 7}, "random": {1, 8}, "urandom": {1, 9}, "tty": {5, 0}, "kmsg": {1, 11},
	} {
		path := at("dev/" + name)
		if err := unix.Mknod(path, unix.S_IFCHR|0o666, int(unix.Mkdev(number[0], number[1]))); err != nil {
			return fmt.Errorf("making %s: %w", path, err)
		}
		if err := os.Chmod(path, 0o666); err != nil {
			return err
		}
	}
	for link, target := range map[string]string{
		"fd": "/proc/self/fd", "stdin": "/proc/self/fd/0", "stdout": "/proc/self/fd/1", "stderr": "/proc/self/fd/2", "ptmx": "pts/ptmx",
	} {
		if err := os.Symlink(target, at("dev/"+link)); err != nil {
			return err
		}
	}
	for _, m := range []mount{
		{"devpts", at("dev/pts"), "devpts", 0, "newinstance,ptmxmode=0666,mode=620"},
		{"tmpfs", at("dev/shm"), "tmpfs", 0, "mode=1777"},
		{"mqueue", at("dev/mqueue"), "mqueue", 0, ""},
	} {
		if err := m.do(); err != nil {
			return err
		}
	}

	return nil
}

// mountControlGroups shows the node its own groups, in the version that this machine has.
func mountControlGroups(at func(string) string) error {
	if unified() {
		return mount{"cgroup2", at("sys/fs/cgroup"), "cgroup2", 0, ""}.do()
	}
	if err := (mount{"tmpfs", at("sys/fs/cgroup"), "tmpfs", 0, "mode=755"}).do(); err != nil {
		return err
	}
	for _, h := range hierarchies() {
		target := at("sys/fs/cgroup/" + filepath.Base(h))
		if err := os.Mkdir(target, 0o755); err != nil {
			return err
		}
		m := mount{"cgroup", target, "cgroup", 0, filepath.Base(h)}
		switch filepath.Base(h) {
		case "unified":
			m = mount{"cgroup2", target, "cgroup2", 0, ""}
		case "systemd":
			m.data = "none,name=systemd"
		}
		if err := m.do(); err != nil {
			return err
		}
	}

	return nil
}

// kernelSettings lists what machined and kubelets set and no namespace keeps apart: they get files to write to.
var kernelSettings = []string{
	"kernel/panic", "kernel/panic_on_oops", "kernel/pid_max", "kernel/keys/root_maxkeys", "kernel/keys/root_maxbytes",
	"vm/overcommit_memory", "vm/panic_on_oom", "fs/inotify/max_user_instances", "fs/aio-max-nr",
}

// shieldKernel keeps the machine's own settings from the node.
func shieldKernel(dir string, at func(string) string) error {
	sys := at("proc/sys")
	for _, m := range []mount{
		{sys, sys, "", unix.MS_BIND | unix.MS_REC, ""},
		{sys + "/net", sys + "/net", "", unix.MS_BIND, ""},
		{"", sys, "", unix.MS_BIND | unix.MS_REMOUNT | unix.MS_RDONLY, ""},
	} {
		if err := m.do(); err != nil {
			return err
		}
	}
	for _, name := range kernelSettings {
		content, err := os.ReadFile(filepath.Join(sys, name))
		if err != nil {
			return fmt.Errorf("reading a setting of the kernel: %w", err)
		}
		own := filepath.Join(dir, "sys", name)
		if err := writeFile(own, string(content)); err != nil {
			return err
		}
		if err := (mount{source: own, target: filepath.Join(sys, name), flags: unix.MS_BIND}).do(); err != nil {
			return err
		}
	}
	if mayLowerOOMScores() {
		return nil
	}
	// machined insists on lower scores for its services, unless it runs in a user namespace.
	own := filepath.Join(dir, "uid_map")
	if err := writeFile(own, "         0     100000      65536\n"); err != nil {
		return err
	}

	return mount{source: own, target: at("proc/1/uid_map"), flags: unix.MS_BIND}.do()
}

// pivot makes root the root file system, and lets go of the old one.
func pivot(root string) error {
	if err := unix.Chdir(root); err != nil {
		return err
	}
	if err := unix.PivotRoot(".", "."); err != nil {
		return fmt.Errorf("entering the root file system: %w", err)
	}
	if err := unix.Unmount(".", unix.MNT_DETACH); err != nil {
		return fmt.Errorf("leaving the old root file system: %w", err)
	}

	return unix.Chdir("/")
}
