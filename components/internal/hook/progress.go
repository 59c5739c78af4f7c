// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package hook

import (
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"
)

// heartbeat is the longest silence while a step waits.
const heartbeat = 30 * time.Second

// progress holds what a step said last, and since when it runs.
type progress struct {
	mu      sync.Mutex
	began   time.Time
	limit   time.Duration
	last    string
	changed bool
}

// begin returns the step of a hook that starts now. Until the returned function is called, people hear from it at least
// every so often: the line that it said last, how long it has been running and how long it may.
func begin(ctx *pulumi.Context, urn pulumi.URN, interval time.Duration) (Step, func()) {
	step := Step{Ctx: ctx, URN: urn, progress: &progress{began: time.Now()}}
	ended := make(chan struct{})
	go func() {
		tick := time.NewTicker(interval)
		defer tick.Stop()
		for {
			select {
			case <-ended:
				return
			case <-tick.C:
				if line := step.progress.beat(time.Now()); line != "" {
					step.pass(line)
				}
			}
		}
	}()

	return step, sync.OnceFunc(func() { close(ended) })
}

// Within tells how long the step may take, as a setting says.
func (s Step) Within(limit time.Duration) {
	if s.progress != nil {
		s.progress.mu.Lock()
		defer s.progress.mu.Unlock()
		s.progress.limit = limit
	}
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
func (p *progress) say(line string) {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.last, p.changed = line, true
}

// beat returns what to say when nothing was said for a while; empty where something was, or nothing is waited for.
func (p *progress) beat(now time.Time) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.last == "" {
		return ""
	}
	if p.changed {
		p.changed = false

		return ""
	}
	took := now.Sub(p.began).Round(time.Second)
	if p.limit > 0 {
		return fmt.Sprintf("%s (%s of at most %s)", p.last, took, p.limit)
	}

	return fmt.Sprintf("%s (%s)", p.last, took)
}
