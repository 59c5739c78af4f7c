// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package stack_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// byHand reads testdata/byhand.txt: rules that only edits written by hand break, by their form, with the reason.
func byHand(t testing.TB) map[string]string {
	t.Helper()
	reasons := map[string]string{}
	for line := range strings.Lines(read(t, "testdata/byhand.txt")) {
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' {
			continue
		}
		form, reason, ok := strings.Cut(line, " @@ ")
		require.True(t, ok, line)
		reasons[form] = reason
	}

	return reasons
}

// TestGeneratedEditsBreakTheirRules makes the smallest edits that were generated (TestMine), one for each rule that generation
// reaches. Each is told at a line, and once where it is one mistake. Every other rule has a reason why only a person breaks it.
func TestGeneratedEditsBreakTheirRules(t *testing.T) {
	t.Parallel()
	book := newRulebook(t)
	broken := map[string]bool{}
	edits, once := mistakesIn(t, "testdata/generated.txt"), 0
	for _, m := range edits {
		name := m.base + ": " + strings.Join(m.edits, " ;; ")
		problems, _ := load1(t, m)
		if !assert.NotEmpty(t, problems, "breaks nothing any more: %s", name) {
			continue
		}
		for _, p := range problems {
			if !strings.Contains(name, p.Path+"=null") { // what is not there has no line
				assert.Positive(t, p.Line, "%s: %s", name, p)
			}
			assert.NotContains(t, strings.ToLower(p.String()), secretInMistakes, name)
			for _, i := range book.of(p.Message) {
				broken[book.all[i].form.String()] = true
			}
		}
		if m.at == "several" {
			continue
		}
		once++
		if assert.Len(t, problems, 1, name) {
			assert.Equal(t, m.at, problems[0].Path, name)
		}
	}

	reasons := byHand(t)
	generated := 0
	for _, rule := range book.all {
		form := rule.form.String()
		reason, hand := reasons[form]
		switch {
		case broken[form]:
			generated++
			assert.False(t, hand, "%s is broken by a generated edit now: take it out of testdata/byhand.txt", form)
		case !hand:
			assert.Fail(t, "no generated edit breaks a rule", "%s %s: generate one with -mine 10m, or say in testdata/byhand.txt why none can",
				rule.at, form)
		default:
			assert.NotEmpty(t, reason, form)
		}
	}
	t.Logf("%d generated edits, %d of them one problem each, break %d of %d rules; %d are broken by hand, with a reason",
		len(edits), once, generated, len(book.all), len(book.all)-generated)
}
