// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package check_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/talos-proxmox/talos-proxmox/internal/check"
	"github.com/talos-proxmox/talos-proxmox/spec"
)

func TestPaths(t *testing.T) {
	t.Parallel()
	path := check.Join(check.Key(check.Index(check.Key("a", "b"), 2), `d.e["f"]`), "g")
	assert.Equal(t, `a.b[2]["d.e[\"f\"]"].g`, path)
	assert.Equal(t, []string{"a", "b", "2", `d.e["f"]`, "g"}, check.Elements(path))
	assert.Equal(t, `a.b[2]["d.e[\"f\"]"]`, check.Parent(path))
	assert.Equal(t, "a.b", check.Head(path, 2))
	assert.Equal(t, path, check.Head(path, 9))
	assert.Empty(t, check.Parent("a"))
	assert.Empty(t, check.Parent(""))
	for _, key := range []string{"", `"`, "[", "]", ".", `["`, `\`, "a.b", "ключ", "\xff"} {
		at := check.Join(check.Key("m", key), "x")
		if key != "\xff" { // what is no text is shown as its bytes
			assert.Equal(t, []string{"m", key, "x"}, check.Elements(at))
		}
		assert.Equal(t, check.Key("m", key), check.Parent(at))
	}
	for _, odd := range []string{".", "[", "..", "a..b", "a[", `a["`, "]"} {
		assert.NotPanics(t, func() { check.Elements(odd) })
	}
}

func TestNearest(t *testing.T) {
	t.Parallel()
	keys := []string{"cpu", "memory", "vmId", "cpuType", "networks"}
	for text, want := range map[string]string{
		"vm_id": "vmId", "VMID": "vmId", "memry": "memory", "mmeory": "memory", "network": "networks", "cpu-type": "cpuType",
		"x": "", "wobble": "", "cp": "", "": "",
	} {
		assert.Equal(t, want, check.Nearest(text, keys), text)
	}
}

func TestListIsSortedAndTellsOnce(t *testing.T) {
	t.Parallel()
	var l check.List
	assert.NoError(t, l.Err("stack dev"))
	l.Addf("b", "is %s", "wrong")
	l.Addf("a", "is wrong")
	l.Addf("b", "is wrong")
	l.Map(func(p spec.Problem) spec.Problem {
		p.Line = len(p.Path)

		return p
	})
	assert.EqualError(t, l.Err("stack dev"), "stack dev: 2 problems\n  a (line 1): is wrong\n  b (line 1): is wrong")
}
