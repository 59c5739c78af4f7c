// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package keys_test

import (
	"reflect"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/talos-proxmox/talos-proxmox/spec"
	"github.com/talos-proxmox/talos-proxmox/stack"
)

// TestADefaultIsWhatIsUsed writes each key's default into a stack that leaves the key out: nothing that the program
// asks of the engine may become another, else the default of the reference is not what the code does.
func TestADefaultIsWhatIsUsed(t *testing.T) {
	t.Parallel()
	r := newRunner(t)
	for _, k := range stack.Keys() {
		c, _ := caseOf(k.Path)
		if !k.Leaf() || k.Default == "" || c.shown != nil {
			continue
		}
		t.Run(k.Path, func(t *testing.T) {
			t.Parallel()
			under, path := stackFor(t, k, c)
			// The block of the key is there in both: to write a block can mean something of its own.
			was := r.base(t, overlay(t, under, wrapped(path[:len(path)-1], map[string]any{})))
			now := r.outcome(t, overlay(t, under, wrapped(path, parse(t, defaultOf(k)))))
			if c.refused != "" && now.err != nil { // a key that may not be written there, or a stack that is refused anyway
				return
			}
			require.Equal(t, was.err, now.err)
			assert.Empty(t, difference(was, now), k.Default)
		})
	}
}

// defaultOf returns the default of a key as a stack file has it.
func defaultOf(k spec.Key) string {
	switch k.Type.Kind() {
	case reflect.Slice:
		return "[" + strings.TrimSpace(k.Default) + "]"
	case reflect.String:
		return strconv.Quote(k.Default)
	default:
		return k.Default
	}
}
