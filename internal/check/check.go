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

	"github.com/talos-proxmox/talos-proxmox/spec"
)

// List gathers problems; its zero value is ready to use.
type List struct {
	found []spec.Problem
	seen  map[spec.Problem]bool
}

// Addf records a problem at path. The same problem is recorded once.
func (l *List) Addf(path, format string, args ...any) {
	l.Add(spec.Problem{Path: path, Message: fmt.Sprintf(format, args...)})
}

// urlPassword is a password inside an URL.
var urlPassword = regexp.MustCompile(`(://[^:/@\s]*):[^\s]*@`)

// Add records a problem. The same problem is recorded once, and a password inside an URL not at all.
func (l *List) Add(p spec.Problem) {
	p.Message = urlPassword.ReplaceAllString(p.Message, "$1:…@")
	if l.seen[p] {
		return
	}
	if l.seen == nil {
		l.seen = map[spec.Problem]bool{}
	}
	l.seen[p] = true
	l.found = append(l.found, p)
}

// Problems returns what was recorded, sorted by path and message.
func (l *List) Problems() []spec.Problem {
	sorted := slices.Clone(l.found)
	slices.SortStableFunc(sorted, func(a, b spec.Problem) int {
		if c := strings.Compare(a.Path, b.Path); c != 0 {
			return c
		}

		return strings.Compare(a.Message, b.Message)
	})

	return sorted
}

// Map changes every recorded problem, to translate paths or add lines.
func (l *List) Map(change func(spec.Problem) spec.Problem) {
	found := l.found
	l.found, l.seen = nil, nil
	for _, p := range found {
		l.Add(change(p))
	}
}

// Err returns nil when nothing was recorded, else an [*spec.InvalidError] that names every problem.
func (l *List) Err(subject string) error {
	if len(l.found) == 0 {
		return nil
	}

	return &spec.InvalidError{Subject: subject, Problems: l.Problems()}
}

// Join puts path elements together: Join("nodes", "work-01") is "nodes.work-01".
func Join(path ...string) string {
	return strings.Join(slices.DeleteFunc(slices.Clone(path), func(s string) bool { return s == "" }), ".")
}

// Index is the path of a list's element: Index("disks", 2) is "disks[2]".
func Index(path string, i int) string { return fmt.Sprintf("%s[%d]", path, i) }
