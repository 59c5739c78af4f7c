// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package hook

import (
	"fmt"
	"slices"
	"sync"
	"time"
)

// Work collects what a run has done to a cluster, phase by phase, for the summary at its end.
type Work struct {
	mu       sync.Mutex
	phases   []*phase
	warnings int
}

// phase collects one kind of work on nodes.
type phase struct {
	what         string
	nodes        []string
	began, ended time.Time
}

// Did notes that the work of a phase on a node is done, and since when it took.
func (w *Work) Did(what, node string, began, ended time.Time) {
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

// Warned notes a warning.
func (w *Work) Warned() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.warnings++
}

// Lines returns a line for each phase, and one for the warnings where there were any.
func (w *Work) Lines() []string {
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

// counted returns a number with its noun.
func counted(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}

	return fmt.Sprintf("%d %ss", n, noun)
}
