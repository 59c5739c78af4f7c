// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package chaos

import (
	"fmt"
	"slices"
	"strings"
)

// Verb holds what a step does.
type Verb string

const (
	// Edit changes the stack file: "edit memory=3072", "edit add=worker-6", "edit remove=cp-2".
	Edit Verb = "edit"
	// Run runs Pulumi: "run up", "run up --refresh", "run up kill=7", "run refresh", "run preview".
	Run Verb = "run"
	// Hand does what an operator does by hand: "hand stop cp-1", "hand delete cp-1", "hand cordon cp-1".
	Hand Verb = "hand"
	// Fault orders a fault from the lab: "fault task-error type=qmreboot count=1".
	Fault Verb = "fault"
	// Clear ends all faults.
	Clear Verb = "clear"
)

// Step holds one line of a script.
type Step struct {
	Verb Verb
	Args []string
}

// String returns the step as a line of a script.
func (s Step) String() string { return strings.Join(append([]string{string(s.Verb)}, s.Args...), " ") }

// Has reports whether the step has that argument.
func (s Step) Has(arg string) bool { return slices.Contains(s.Args, arg) }

// Value returns the value of the argument KEY=VALUE, or "".
func (s Step) Value(key string) string {
	for _, arg := range s.Args {
		if k, v, ok := strings.Cut(arg, "="); ok && k == key {
			return v
		}
	}

	return ""
}

// Script tells what a run does, in order.
type Script struct {
	// Nodes that the cluster starts with, "cp-1" or "worker-4".
	Nodes []string
	Steps []Step
}

// String returns the script as text that [ParseScript] reads.
func (s Script) String() string {
	lines := []string{"cluster " + strings.Join(s.Nodes, " ")}
	for _, step := range s.Steps {
		lines = append(lines, step.String())
	}

	return strings.Join(lines, "\n") + "\n"
}

// ParseScript reads a script: "cluster NODE…" first, then a step a line. Empty lines and lines that begin
// with # are left out.
func ParseScript(text string) (Script, error) {
	var script Script
	for number, line := range strings.Split(text, "\n") {
		words := strings.Fields(line)
		if len(words) == 0 || strings.HasPrefix(words[0], "#") {
			continue
		}
		if words[0] == "cluster" {
			script.Nodes = words[1:]

			continue
		}
		step := Step{Verb: Verb(words[0]), Args: words[1:]}
		if !slices.Contains([]Verb{Edit, Run, Hand, Fault, Clear}, step.Verb) {
			return Script{}, fmt.Errorf("line %d: unknown step %q: write cluster, edit, run, hand, fault or clear", number+1, words[0])
		}
		script.Steps = append(script.Steps, step)
	}
	if len(script.Nodes) == 0 {
		return Script{}, fmt.Errorf("the script names no nodes: begin with a line such as %q", "cluster cp-1 cp-2 cp-3")
	}

	return script, nil
}
