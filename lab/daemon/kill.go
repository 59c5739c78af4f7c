// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package daemon

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// Watch holds open a request on which the lab says when the command is to die.
type Watch struct {
	cancel context.CancelFunc
	done   chan struct{}
}

// Watch tells the lab of a command, and kills its process, with everything that it has started, when the lab says
// so. A lab that cannot be asked kills nobody.
func (p SiteDir) Watch(pid int) Watch {
	ctx, cancel := context.WithCancel(context.Background())
	w := Watch{cancel: cancel, done: make(chan struct{})}
	registered := make(chan struct{})

	go func() {
		defer close(w.done)
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://lab/command", nil)
		if err != nil {
			close(registered)

			return
		}
		res, err := p.client(0).Do(req)
		close(registered)
		if err != nil {
			return
		}
		defer func() { _ = res.Body.Close() }() // its end tells the lab that the command is dead

		var what order
		if json.NewDecoder(res.Body).Decode(&what) != nil {
			return // the command has ended, or the lab has
		}
		fmt.Fprintln(os.Stderr, "lab: the command is killed", what.Reason)
		killTree(pid)
	}()
	<-registered

	return w
}

// End stops watching: the command has ended.
func (w Watch) End() {
	w.cancel()
	<-w.done
}

// killTree kills a process and its descendants at once, as a machine that loses its power does. The
// process is stopped first, so that it starts nothing meanwhile.
func killTree(pid int) {
	_ = syscall.Kill(pid, syscall.SIGSTOP) // it has ended when this fails
	all := append([]int{pid}, descendants(pid)...)
	for _, p := range all {
		_ = syscall.Kill(p, syscall.SIGKILL) // it has ended when this fails
	}
}

// descendants returns the processes below a process.
func descendants(pid int) []int {
	children := map[int][]int{}
	for child, parent := range parents() {
		children[parent] = append(children[parent], child)
	}

	var all []int
	for next := children[pid]; len(next) > 0; {
		p := next[0]
		next = append(next[1:], children[p]...)
		all = append(all, p)
	}

	return all
}

// parents leads from each process to the one that started it: as /proc says where there is one, else
// as ps does.
func parents() map[int]int {
	of := map[int]int{}
	stats, _ := filepath.Glob("/proc/[0-9]*/stat") // the pattern is good
	for _, path := range stats {
		data, err := os.ReadFile(path) // G304: below /proc
		if err != nil {
			continue // it has ended
		}
		// "12 (name) S 3 …"; a name may hold parentheses and spaces
		pid := filepath.Base(filepath.Dir(path))
		if f := strings.Fields(string(data[bytes.LastIndexByte(data, ')')+1:])); len(f) > 1 {
			addParent(of, pid, f[1])
		}
	}
	if len(of) > 0 {
		return of
	}

	out, err := exec.Command("ps", "-A", "-o", "pid=,ppid=").Output()
	if err != nil {
		return nil
	}
	for line := range strings.Lines(string(out)) {
		if f := strings.Fields(line); len(f) == 2 {
			addParent(of, f[0], f[1])
		}
	}

	return of
}

func addParent(of map[int]int, pid, parent string) {
	child, errChild := strconv.Atoi(pid)
	p, errParent := strconv.Atoi(parent)
	if errChild == nil && errParent == nil {
		of[child] = p
	}
}
