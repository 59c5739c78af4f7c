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

	"github.com/talos-proxmox/talos-proxmox/internal/credential"
	"github.com/talos-proxmox/talos-proxmox/spec"
)

// List gathers problems; its zero value is ready to use.
type List struct {
	found []spec.Problem
	seen  map[spec.Problem]bool
	// others are the settings beside which a problem's own is wrong.
	others map[spec.Problem]string
}

// Addf records a problem at path. The same problem is recorded once.
func (l *List) Addf(path, format string, args ...any) {
	l.Add(spec.Problem{Path: path, Message: fmt.Sprintf(format, args...)})
}

// Add records a problem, without what could be a credential in its message. The same problem is recorded once.
func (l *List) Add(p spec.Problem) {
	p = redacted(p)
	if l.seen[p] {
		return
	}
	if l.seen == nil {
		l.seen = map[spec.Problem]bool{}
	}
	l.seen[p] = true
	l.found = append(l.found, p)
}

func redacted(p spec.Problem) spec.Problem {
	p.Message = escaped(credential.Redact(p.Message))

	return p
}

// Between records a problem of two settings that do not go together: at path, or at other where the one who reads a file finds that
// this is the one to blame.
func (l *List) Between(path, other, format string, args ...any) {
	p := redacted(spec.Problem{Path: path, Message: fmt.Sprintf(format, args...)})
	l.Add(p)
	if l.others == nil {
		l.others = map[spec.Problem]string{}
	}
	l.others[p] = other
}

// Other returns the setting beside which a problem's own is wrong; "" where there is none.
func (l *List) Other(p spec.Problem) string { return l.others[p] }

// Has reports whether there is a problem at the path, below or around it.
func (l *List) Has(path string) bool {
	for _, p := range l.found {
		a, b := p.Path, path
		if len(a) > len(b) {
			a, b = b, a
		}
		if a == b || strings.HasPrefix(b, a) && strings.ContainsRune(".[", rune(b[len(a)])) {
			return true
		}
	}

	return false
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

// Paths returns the paths of what was recorded.
func (l *List) Paths() []string {
	var all []string
	for _, p := range l.found {
		all = append(all, p.Path)
	}

	return all
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

	problems := l.Problems()
	for i := range problems {
		problems[i].Path = escaped(redactPath(problems[i].Path))
	}

	return &spec.InvalidError{Subject: subject, Problems: problems}
}

// quoted is a value as messages and paths quote it.
var quoted = regexp.MustCompile(`"(?:[^"\\]|\\.)*"`)

// escaped shows letters of other scripts in quoted values as escapes, since many look like Latin ones or cannot be seen.
func escaped(text string) string {
	return quoted.ReplaceAllStringFunc(text, func(q string) string {
		var b strings.Builder
		for _, c := range q {
			switch {
			case c < 0x80 || string(c) == credential.Hidden:
				b.WriteRune(c)
			case c > 0xffff:
				fmt.Fprintf(&b, `\U%08x`, c)
			default:
				fmt.Fprintf(&b, `\u%04x`, c)
			}
		}

		return b.String()
	})
}

// redactPath returns a path without names that could be credentials.
func redactPath(path string) string {
	for _, name := range Elements(path) {
		if shown := credential.RedactValue(name); shown != name {
			path = strings.ReplaceAll(path, name, shown)
		}
	}

	return path
}

// Join puts path elements together: Join("nodes", "work-01") is "nodes.work-01".
func Join(path ...string) string {
	return strings.Join(slices.DeleteFunc(slices.Clone(path), func(s string) bool { return s == "" }), ".")
}

// Index returns the path of a list's element: Index("disks", 2) is "disks[2]".
func Index(path string, i int) string { return fmt.Sprintf("%s[%d]", path, i) }
