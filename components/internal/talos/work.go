// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package talos

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/talos-proxmox/talos-proxmox/components/internal/hook"
)

// work is what a run has done to a cluster, phase by phase, for the summary at its end.
type work struct {
	mu       sync.Mutex
	phases   []*phase
	warnings int
}

// phase is one kind of work on nodes.
type phase struct {
	what         string
	nodes        []string
	began, ended time.Time
}

// did notes that the work of a phase on a node is done, and since when it took.
func (w *work) did(what, node string, began, ended time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	at := slices.IndexFunc(w.phases, func(p *phase) bool { return p.what == what })
	if at < 0 {
		at = len(w.phases)
		w.phases = append(w.phases, &phase{what: what, began: began})
	}
	p := w.phases[at]
	if !slices.Contains(p.nodes, node) {
		p.nodes = append(p.nodes, node)
	}
	if began.Before(p.began) {
		p.began = began
	}
	p.ended = ended
}

// warned notes a warning.
func (w *work) warned() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.warnings++
}

// lines returns a line for each phase, and one for the warnings where there were any.
func (w *work) lines() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	var all []string
	for _, p := range w.phases {
		all = append(all, fmt.Sprintf("%s: %s in %s", p.what, counted(len(p.nodes), "node"), p.ended.Sub(p.began).Round(time.Second)))
	}
	if w.warnings > 0 {
		all = append(all, counted(w.warnings, "warning")+" above")
	}

	return all
}

// locate tells a step which of the cluster's nodes it works on, and counts the warnings that it says.
func (s *Session) locate(step hook.Step, node string) {
	for i, m := range s.Cluster.Members {
		if m.Name == node {
			step.At(i+1, len(s.Cluster.Members))
		}
	}
}

// reporting returns how a step's lines are reported, with warnings counted.
func (s *Session) reporting(step hook.Step) func(line string) {
	return func(line string) {
		if strings.HasPrefix(line, "warning") {
			s.work.warned()
		}
		step.Report(line)
	}
}
