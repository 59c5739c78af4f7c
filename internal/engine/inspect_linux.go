// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package engine

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// inspect returns what /proc says of a process.
func inspect(pid int) (process, bool) {
	dir := filepath.Join("/proc", strconv.Itoa(pid))
	line, err := os.ReadFile(filepath.Join(dir, "cmdline"))
	if err != nil {
		return process{}, false
	}
	stat, err := os.ReadFile(filepath.Join(dir, "stat"))
	if err != nil {
		return process{}, false
	}
	// The name in parentheses may hold spaces; its state and its parent follow.
	fields := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))
	if len(fields) < 2 {
		return process{}, false
	}
	parent, err := strconv.Atoi(fields[1])
	if err != nil {
		return process{}, false
	}
	cwd, err := os.Readlink(filepath.Join(dir, "cwd"))

	return process{parent: parent, args: strings.Split(strings.TrimSuffix(string(line), "\x00"), "\x00"), dir: cwd}, err == nil
}
