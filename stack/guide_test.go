// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package stack_test

import (
	"fmt"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/talos-proxmox/talos-proxmox/spec"
)

var tableRow = regexp.MustCompile("(?m)^\\| `([^`]+)` \\| `([^`]+)` \\| .+ \\|$")

// TestGuideIsTrue loads the worked case of the guide and holds its table against it.
func TestGuideIsTrue(t *testing.T) {
	t.Parallel()
	guide := read(t, "../docs/stack-file.md")
	_, worked, _ := strings.Cut(guide, "A worked case:\n\n```yaml\n")
	text, after, ok := strings.Cut(worked, "```\n")
	require.True(t, ok)
	table, _, ok := strings.Cut(after, "\n## ")
	require.True(t, ok)

	s, err := load(t, text)
	require.NoError(t, err)
	node, ok := s.Node("work-02")
	require.True(t, ok)
	rows := tableRow.FindAllStringSubmatch(table, -1)
	require.Len(t, rows, 13)
	for _, row := range rows {
		assert.Equal(t, row[2], written(t, reflect.ValueOf(node.Node), strings.Split(row[1], ".")), row[1])
	}
}

// written returns the value at a path, as the guide writes it.
func written(t *testing.T, v reflect.Value, path []string) string {
	t.Helper()
	v = reflect.Indirect(v)
	if len(path) == 0 {
		return strings.Trim(fmt.Sprint(v.Interface()), "[]")
	}
	if v.Kind() == reflect.Map {
		return written(t, v.MapIndex(reflect.ValueOf(path[0])), path[1:])
	}
	for _, f := range spec.Fields(v.Type()) {
		if f.Name == path[0] {
			return written(t, v.FieldByIndex(f.Index), path[1:])
		}
	}
	require.Fail(t, "no such setting", path[0])

	return ""
}
