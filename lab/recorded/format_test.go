// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package recorded_test

import (
	"encoding/base64"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/talos-proxmox/talos-proxmox/lab/recorded"
)

func TestFormatKeepsNoKeys(t *testing.T) {
	t.Parallel()
	key := base64.StdEncoding.EncodeToString([]byte(strings.Repeat("a private key ", 200)))
	lines := []string{
		"OK 1 items", `- os: {"crt":"` + key + `","key":"` + key + `","token":"abcdef.0123456789abcdef"}`,
		`- token: [{"stringData":{"token-id":"abcdef","token-secret":"0123456789abcdef"}}]`,
		strings.Repeat("long ", 299) + key,
	}
	text := recorded.Format("made up", []recorded.Answer{{Call: "List", Lines: lines}})
	assert.NotContains(t, text, key[:20])
	assert.NotContains(t, text, "0123456789abcdef")
	assert.Contains(t, text, "made up\n## List\n   OK 1 items\n")
}

func TestFormatIsCompared(t *testing.T) {
	t.Parallel()
	var lines []string
	for i := range 40 {
		lines = append(lines, fmt.Sprintf("- item %d %s", i, strings.Repeat("x ", 40*i)))
	}
	text := recorded.Format("made up", []recorded.Answer{{Call: "List", Lines: lines}})
	kept := recorded.Answer{Call: "List"}
	for _, l := range strings.Split(text, "\n")[2:] {
		if l = strings.TrimSpace(l); l != "" {
			kept.Lines = append(kept.Lines, l)
		}
	}
	assert.True(t, kept.Equal(lines), "what was cut off stands for the rest")
	lines[3] = "- another"
	assert.False(t, kept.Equal(lines))
}
