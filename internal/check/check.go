// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

// Package check collects problems with the path of the field they are about, so that all of them
// are reported together.
package check

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// Problem is one thing that is wrong.
type Problem struct {
	// Path of the field, "nodes.work-01.disks.longhorn.size".
	Path string
	// Line in the stack file; 0 when unknown.
	Line int
	// Message says what is wrong and what would be right.
	Message string
}

// String is "path: message", with the line where it is known.
func (p Problem) String() string {
	where := p.Path
	if p.Line > 0 {
		where = fmt.Sprintf("%s (line %d)", p.Path, p.Line)
	}

	return where + ": " + p.Message
}

// List gathers problems; its zero value is ready to use.
type List struct {
	found []Problem
	seen  map[Problem]bool
}

// Addf records a problem at path. The same problem is recorded once.
func (l *List) Addf(path, format string, args ...any) {
	l.Add(Problem{Path: path, Message: fmt.Sprintf(format, args...)})
}

// urlPassword is a password inside an URL.
var urlPassword = regexp.MustCompile(`(://[^:/@\s]*):[^\s]*@`)

// Add records a problem. The same problem is recorded once, and a password inside an URL not at all.
func (l *List) Add(p Problem) {
	p.Message = urlPassword.ReplaceAllString(p.Message, "$1:…@")
	if l.seen[p] {
		return
	}
	if l.seen == nil {
		l.seen = map[Problem]bool{}
	}
	l.seen[p] = true
	l.found = append(l.found, p)
}

// Problems returns what was recorded, sorted by path and message.
func (l *List) Problems() []Problem {
	sorted := slices.Clone(l.found)
	slices.SortStableFunc(sorted, func(a, b Problem) int {
		if c := strings.Compare(a.Path, b.Path); c != 0 {
			return c
		}

		return strings.Compare(a.Message, b.Message)
	})

	return sorted
}

// Map changes every recorded problem, to translate paths or add lines.
func (l *List) Map(change func(Problem) Problem) {
	found := l.found
	l.found, l.seen = nil, nil
	for _, p := range found {
		l.Add(change(p))
	}
}

// Err returns nil when nothing was recorded, else an [*Invalid] that names every problem.
func (l *List) Err(subject string) error {
	if len(l.found) == 0 {
		return nil
	}

	return &Invalid{Subject: subject, Problems: l.Problems()}
}

// Invalid is everything that is wrong with one subject.
type Invalid struct {
	// Subject is what was checked, "stack dev".
	Subject string
	// Problems sorted by path.
	Problems []Problem
}

// Error is one line a problem.
func (e *Invalid) Error() string {
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

// Join puts path elements together: Join("nodes", "work-01") is "nodes.work-01".
func Join(path ...string) string {
	return strings.Join(slices.DeleteFunc(slices.Clone(path), func(s string) bool { return s == "" }), ".")
}

// Index is the path of a list's element: Index("disks", 2) is "disks[2]".
func Index(path string, i int) string { return fmt.Sprintf("%s[%d]", path, i) }
