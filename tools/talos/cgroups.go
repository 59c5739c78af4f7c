// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

const (
	cgroupRoot   = "/sys/fs/cgroup"
	cgroupPrefix = "talos-nodes-" // then the process id of the guard
)

// unified reports whether this machine has cgroup v2 alone.
func unified() bool {
	var st unix.Statfs_t

	return unix.Statfs(cgroupRoot, &st) == nil && st.Type == unix.CGROUP2_SUPER_MAGIC
}

// hierarchies returns where control groups are mounted: one place with cgroup v2, else one per controller.
func hierarchies() []string {
	if unified() {
		return []string{cgroupRoot}
	}
	entries, _ := os.ReadDir(cgroupRoot)
	var all []string
	for _, e := range entries {
		if e.IsDir() {
			all = append(all, filepath.Join(cgroupRoot, e.Name()))
		}
	}

	return all
}

// joinControlGroup puts a process into a group of its own in every hierarchy.
func joinControlGroup(guard int, name string, pid int) error {
	for _, h := range hierarchies() {
		dir := filepath.Join(h, cgroupPrefix+strconv.Itoa(guard), name)
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return fmt.Errorf("making a control group: %w", err)
		}
		if unified() {
			if err := delegate(h, filepath.Dir(dir)); err != nil {
				return err
			}
		} else if err := inheritCPUs(dir); err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(dir, "cgroup.procs"), []byte(strconv.Itoa(pid)), 0o644); err != nil {
			return fmt.Errorf("joining a control group: %w", err)
		}
	}

	return nil
}

// delegate hands all controllers of a cgroup v2 hierarchy down to the groups of nodes.
func delegate(dirs ...string) error {
	for _, dir := range dirs {
		content, err := os.ReadFile(filepath.Join(dir, "cgroup.controllers"))
		if err != nil {
			return fmt.Errorf("reading controllers: %w", err)
		}
		for c := range strings.FieldsSeq(string(content)) {
			// One that cannot be handed down here is missing in the nodes, too.
			_ = os.WriteFile(filepath.Join(dir, "cgroup.subtree_control"), []byte("+"+c), 0o644)
		}
	}

	return nil
}

// inheritCPUs lets a group of cgroup v1 use its parent's processors and memory nodes; without any it takes no process.
func inheritCPUs(dir string) error {
	for _, d := range []string{filepath.Dir(dir), dir} {
		for _, file := range []string{"cpuset.cpus", "cpuset.mems"} {
			own := filepath.Join(d, file)
			if content, err := os.ReadFile(own); err != nil || strings.TrimSpace(string(content)) != "" {
				continue // another hierarchy, or set
			}
			content, err := os.ReadFile(filepath.Join(filepath.Dir(d), file))
			if err == nil {
				err = os.WriteFile(own, content, 0o644)
			}
			if err != nil {
				return fmt.Errorf("setting %s: %w", own, err)
			}
		}
	}

	return nil
}

// removeControlGroups removes the groups that a guard's site made. Its processes are dead; the kernel may take a moment.
func removeControlGroups(guard int) error {
	var err error
	for range 50 {
		err = nil
		for _, h := range hierarchies() {
			err = errors.Join(err, removeTree(filepath.Join(h, cgroupPrefix+strconv.Itoa(guard))))
		}
		if err == nil {
			return nil
		}
		time.Sleep(100 * time.Millisecond)
	}

	return fmt.Errorf("removing control groups: %w", err)
}

// removeTree removes a control group and those below it: folders go, the files in them are the kernel's.
func removeTree(dir string) error {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	for _, e := range entries {
		if e.IsDir() {
			err = errors.Join(err, removeTree(filepath.Join(dir, e.Name())))
		}
	}

	return errors.Join(err, syscall.Rmdir(dir))
}

// sweepControlGroups removes what guards that were killed themselves had to leave.
func sweepControlGroups() error {
	var all error
	for _, h := range hierarchies() {
		found, _ := filepath.Glob(filepath.Join(h, cgroupPrefix+"*"))
		for _, dir := range found {
			pid, err := strconv.Atoi(strings.TrimPrefix(filepath.Base(dir), cgroupPrefix))
			if err == nil && errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) {
				all = errors.Join(all, removeTree(dir))
			}
		}
	}

	return all
}
