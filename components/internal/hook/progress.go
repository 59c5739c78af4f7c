// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package hook

import (
	"fmt"
	"strings"
	"sync"
	"time"
)

// heartbeat is the longest silence while a step waits; whether it is over is looked at several times as often.
const (
	heartbeat = 30 * time.Second
	looks     = 6
)

// progress holds what a step said last, and since when it runs.
type progress struct {
	mu     sync.Mutex
	began  time.Time
	limit  time.Duration
	at, of int
	last   string
	said   time.Time
}

// isPassing reports whether a line tells of a state that passes rather than of something that was done: it is shown while it
// lasts and not kept among the run's diagnostics.
func isPassing(line string) bool {
	if strings.HasPrefix(line, "waiting") {
		return true
	}
	for _, state := range []string{": waiting for ", " is healthy: ", " pulls ", " installs ", ": installer: "} {
		if strings.Contains(line, state) {
			return true
		}
	}

	return false
}

// say notes a line.
func (p *progress) say(line string, now time.Time) {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.last, p.said = line, now
}

// beat returns what to say when nothing was said for so long; empty where something was, or nothing is waited for.
func (p *progress) beat(now time.Time, silence time.Duration) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.last == "" || now.Sub(p.said) < silence {
		return ""
	}
	p.said = now
	took := now.Sub(p.began).Round(time.Second)
	if p.limit > 0 {
		return fmt.Sprintf("%s%s (%s of at most %s)", p.place(), p.last, took, p.limit)
	}

	return fmt.Sprintf("%s%s (%s)", p.place(), p.last, took)
}

// placed returns a line with the place of its node before it.
func (p *progress) placed(line string) string {
	if p == nil {
		return line
	}
	p.mu.Lock()
	defer p.mu.Unlock()

	return p.place() + line
}

// place names the node among the others, "node 2/6: "; empty for a step that works on no single one. Call it with the lock.
func (p *progress) place() string {
	if p.of == 0 {
		return ""
	}

	return fmt.Sprintf("node %d/%d: ", p.at, p.of)
}
