// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package spec

import (
	"fmt"
	"strings"
)

// Problem describes one thing that is wrong with a setting.
type Problem struct {
	// Path of the field, "nodes.work-01.disks.longhorn.size".
	Path string
	// Line in the stack file; 0 when unknown.
	Line int
	// Message says what is wrong and what would be right.
	Message string
}

// String returns "path: message", with the line where it is known.
func (p Problem) String() string {
	where := p.Path
	if p.Line > 0 {
		where = fmt.Sprintf("%s (line %d)", p.Path, p.Line)
	}

	return where + ": " + p.Message
}

// InvalidError names everything that is wrong with one subject: a stack, a cluster, a node. Whoever checks
// settings returns it, so that callers can match it with [errors.As].
type InvalidError struct {
	// Subject is what was checked, "stack dev".
	Subject string
	// Problems are sorted by path.
	Problems []Problem
}

// Error returns one line per problem.
func (e *InvalidError) Error() string {
	var b strings.Builder
	noun := "problems"
	if len(e.Problems) == 1 {
		noun = "problem"
	}
	fmt.Fprintf(&b, "%s: %d %s", e.Subject, len(e.Problems), noun)
	for _, p := range e.Problems {
		b.WriteString("\n  " + p.String())
	}

	return b.String()
}
