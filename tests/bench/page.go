// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package main

import (
	"fmt"
	"os"
	"strings"
)

// What stands between these marks of a page is written by the bench.
const (
	pageBegin = "<!-- written by make bench -->\n"
	pageEnd   = "<!-- end -->\n"
)

// writePage writes the table into a page, where one is named.
func writePage(path string, rows []row) error {
	if path == "" {
		return nil
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	before, rest, begins := strings.Cut(string(text), pageBegin)
	_, after, ends := strings.Cut(rest, pageEnd)
	if !begins || !ends {
		return fmt.Errorf("%s has no marks to write between:\n%s%s", path, pageBegin, pageEnd)
	}

	return os.WriteFile(path, []byte(before+pageBegin+pageTable(rows)+pageEnd+after), 0o644)
}

// pageTable returns the table as a page has it, with a column for each size, since a page is narrow.
func pageTable(rows []row) string {
	var b strings.Builder
	b.WriteString("| Nodes |")
	line := "|---|"
	for _, r := range rows {
		fmt.Fprintf(&b, " %d |", r.Nodes)
		line += "---:|"
	}
	b.WriteString(" grows by |\n" + line + "---:|\n")
	for _, c := range columns() {
		fmt.Fprintf(&b, "| %s |", c.name)
		var measured []row
		for _, r := range rows {
			fmt.Fprintf(&b, " %s |", c.cell(r))
			if c.value(r) > 0 && (!c.upOnly || r.IsUp) {
				measured = append(measured, r)
			}
		}
		growth := ""
		if len(measured) > 1 {
			growth = exponent(c, measured[max(0, len(measured)-3)], measured[len(measured)-1])
		}
		fmt.Fprintf(&b, " %s |\n", growth)
	}

	return b.String()
}
