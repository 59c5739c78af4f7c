// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package bridge

import (
	"slices"
	"strconv"
	"strings"
)

// Path leads to a property: names and list positions.
type Path []any

// With returns the path one step further; step is a string or an int.
func (p Path) With(step any) Path {
	return append(p[:len(p):len(p)], step)
}

// String writes a path as Pulumi does: disks[0].fileId.
func (p Path) String() string {
	var b strings.Builder

	for i, step := range p {
		switch s := step.(type) {
		case int:
			b.WriteString("[" + strconv.Itoa(s) + "]")
		case string:
			switch {
			case strings.ContainsAny(s, ".[]\" "):
				b.WriteString("[" + strconv.Quote(s) + "]")
			case i > 0:
				b.WriteString("." + s)
			default:
				b.WriteString(s)
			}
		}
	}

	return b.String()
}

// Pattern writes a path with every position as [*].
func (p Path) Pattern() string {
	q := slices.Clone(p)

	var b strings.Builder

	for i, step := range q {
		switch s := step.(type) {
		case int:
			b.WriteString("[*]")
		case string:
			if i > 0 {
				b.WriteString(".")
			}
			b.WriteString(s)
		}
	}

	return b.String()
}

// Covers reports whether pattern names p or something that p is part of: "efiDisk" covers efiDisk.type.
func (p Path) Covers(pattern string) bool {
	own := p.Pattern()

	return own == pattern || strings.HasPrefix(own, pattern+".") || strings.HasPrefix(own, pattern+"[")
}

// ignored reports whether one of a program's ignoreChanges names p or what p is part of.
func (p Path) ignored(paths []string) bool {
	own := p.String()
	for _, path := range paths {
		if own == path || strings.HasPrefix(own, path+".") || strings.HasPrefix(own, path+"[") {
			return true
		}
	}

	return false
}
