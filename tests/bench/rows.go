// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package main

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
)

// readRows returns what was measured earlier; nothing when no file is named or there is none yet.
func readRows(path string) ([]row, error) {
	if path == "" {
		return nil, nil
	}
	text, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var rows []row
	if err := json.Unmarshal(text, &rows); err != nil {
		return nil, fmt.Errorf("reading %s: %w", path, err)
	}

	return rows, nil
}

// writeRows keeps what was measured, where a file is named for it.
func writeRows(path string, rows []row) error {
	if path == "" {
		return nil
	}
	text, err := json.MarshalIndent(rows, "", " ")
	if err != nil {
		return err
	}

	return os.WriteFile(path, text, 0o644)
}

// with returns the rows with another one, in the place of an earlier one of as many nodes.
func with(rows []row, r row) []row {
	rows = slices.DeleteFunc(slices.Clone(rows), func(old row) bool { return old.Nodes == r.Nodes })
	rows = append(rows, r)
	slices.SortFunc(rows, func(a, b row) int { return cmp.Compare(a.Nodes, b.Nodes) })

	return rows
}
