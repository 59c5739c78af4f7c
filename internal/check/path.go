// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package check

import (
	"fmt"
	"strconv"
	"strings"
)

// Key returns the path of a map's entry, in the form that `pulumi config set --path` takes:
// Key("registries", "docker.io") is `registries["docker.io"]`.
func Key(path, key string) string {
	if key != "" && strings.IndexFunc(key, notInName) < 0 {
		return Join(path, key)
	}

	return fmt.Sprintf("%s[%q]", path, key)
}

func notInName(r rune) bool {
	return r != '-' && r != '_' && (r < '0' || r > '9') && (r < 'A' || r > 'Z') && (r < 'a' || r > 'z')
}

// Elements takes a path apart: `a.b[2].c["d.e"]` is a, b, 2, c and d.e.
func Elements(path string) []string {
	var names []string
	for _, e := range elements(path) {
		names = append(names, e.name)
	}

	return names
}

// Head returns the path's first n elements: Head(`a["b.c"].d`, 2) is `a["b.c"]`.
func Head(path string, n int) string {
	all := elements(path)
	switch {
	case n <= 0:
		return ""
	case n >= len(all):
		return path
	default:
		return path[:all[n-1].end]
	}
}

// Parent cuts the last element off a path; a path of one element has the parent "".
func Parent(path string) string { return Head(path, len(elements(path))-1) }

// element holds one part of a path and where it ends.
type element struct {
	name string
	end  int
}

func elements(path string) []element {
	var all []element
	for at := 0; at < len(path); {
		name, length := first(path[at:])
		at += length
		all = append(all, element{name, at})
	}

	return all
}

// first returns the first element of a path, and how much of the path it takes.
func first(path string) (name string, length int) {
	if quoted, err := strconv.QuotedPrefix(strings.TrimPrefix(path, "[")); err == nil && path[0] == '[' {
		if name, err := strconv.Unquote(quoted); err == nil {
			return name, min(len(quoted)+2, len(path))
		}
	}
	if path[0] == '[' {
		if end := strings.IndexByte(path, ']'); end > 0 {
			return path[1:end], end + 1
		}
	}
	skip := 0
	if path[0] == '.' || path[0] == '[' {
		skip = 1
	}
	if end := strings.IndexAny(path[skip:], ".["); end >= 0 {
		return path[skip : skip+end], skip + max(end, 1-skip)
	}

	return path[skip:], len(path)
}
