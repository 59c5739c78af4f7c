// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

//go:build !linux

package engine

import (
	"context"
	"os/exec"
	"strconv"
	"strings"
	"time"
)

// inspect returns what ps says of a process. Arguments with spaces come apart, so that a file whose path has one is not
// found; where there is neither ps nor lsof nothing is known.
func inspect(pid int) (process, bool) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	id := strconv.Itoa(pid)
	out, err := exec.CommandContext(ctx, "ps", "-ww", "-o", "ppid=,args=", "-p", id).Output()
	fields := strings.Fields(string(out))
	if err != nil || len(fields) < 2 {
		return process{}, false
	}
	parent, err := strconv.Atoi(fields[0])
	if err != nil {
		return process{}, false
	}
	p := process{parent: parent, args: fields[1:]}
	// One field a line: "n" and the path of the working directory.
	open, err := exec.CommandContext(ctx, "lsof", "-a", "-d", "cwd", "-Fn", "-p", id).Output()
	for line := range strings.Lines(string(open)) {
		if path, ok := strings.CutPrefix(strings.TrimSpace(line), "n"); ok {
			p.dir = path
		}
	}

	return p, err == nil && p.dir != ""
}
