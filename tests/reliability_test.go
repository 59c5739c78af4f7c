// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package tests_test

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// recorded describes a scenario that was run.
type recorded struct {
	What    string   `json:"what"`
	Faults  []string `json:"faults"`
	Doing   string   `json:"doing"`
	Says    []string `json:"says"`
	Again   []string `json:"again,omitempty"`
	Seconds int      `json:"seconds"` // of the up that mends it and a preview, rounded up to tens
}

func recording() bool { return os.Getenv("RELIABILITY") == "record" }

func runFile(t *testing.T) string {
	t.Helper()
	path, err := filepath.Abs(filepath.Join("testdata", "faults", "run.json"))
	require.NoError(t, err)

	return path
}

// recordMu is held while a scenario is recorded.
var recordMu sync.Mutex

// place returns where a recorded scenario stands among all.
func place(r recorded) int {
	all := slices.Concat(creations(), edits())
	at := slices.IndexFunc(all, func(sc scenario) bool { return sc.what == r.What && sc.doing == r.Doing })
	if at < 0 {
		return len(all)
	}

	return at
}

func readRun(t *testing.T) []recorded {
	t.Helper()
	content, err := os.ReadFile(runFile(t))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	require.NoError(t, err)
	var run []recorded
	require.NoError(t, json.Unmarshal(content, &run))

	return run
}

// record keeps how a scenario went, when `make reliability` asks for it. One that was recorded before
// is written over in its place, so that single scenarios can be run again.
func record(t *testing.T, sc scenario, took time.Duration) {
	t.Helper()
	if !recording() || t.Failed() {
		return
	}
	const tens = 10
	r := recorded{
		What: sc.what, Faults: sc.faults, Doing: sc.doing, Says: sc.says, Again: sc.again,
		Seconds: (int(took.Seconds()) + tens) / tens * tens,
	}
	recordMu.Lock()
	defer recordMu.Unlock()
	run := readRun(t)
	at := len(run)
	for i := range run {
		if run[i].What == r.What && run[i].Doing == r.Doing {
			at = i
		}
	}
	if at == len(run) {
		run = append(run, r)
	}
	run[at] = r
	slices.SortStableFunc(run, func(a, b recorded) int { return cmp.Compare(place(a), place(b)) })
	content, err := json.MarshalIndent(run, "", "  ")
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(runFile(t), append(content, '\n'), 0o600))
}

const reliabilityHead = `# What breaks, what you read, how it heals

Each row is a run of the real Pulumi engine and the real program in the [lab](lab.md), in which something was made to go
wrong with ` + "`lab fault add`" + `. The text is what the ` + "`pulumi up`" + ` that met the fault printed; the test asserts it. Then the fault
was taken away and ` + "`pulumi up`" + ` was run again: it succeeded, a preview was empty, and the site was as an undisturbed run
leaves it (hosts, files, VMs, nodes, clusters). The last column is how long that ` + "`up`" + ` and the preview took in the lab
(whose minute of booting is a second), rounded up to ten seconds; on hardware it is minutes. Durations of faults, as the
program's own time-outs, are real time.

Generated: ` + "`make reliability`" + ` runs the scenarios in ` + "`tests/faults_cases_test.go`" + `, records them in
` + "`tests/testdata/faults/run.json`" + ` and writes this page from the record. The waits of its stack file are short (ready
45 s, apply and upgrade 1 min); with the defaults the same texts come after 15, 10 and 20 minutes.

| What goes wrong | During | What you read | Then | Seconds |
|---|---|---|---|---|
`

// page returns the reliability page of a run.
func page(run []recorded) string {
	var b strings.Builder
	b.WriteString(reliabilityHead)
	for _, r := range run {
		var faults, says []string
		for _, f := range r.Faults {
			faults = append(faults, "`"+f+"`")
		}
		for _, s := range r.Says {
			says = append(says, code(strings.ReplaceAll(s, "|", `\|`)))
		}
		read := cmp.Or(strings.Join(says, " … "), "nothing: the `up` succeeds")
		with := ""
		if len(faults) > 0 {
			with = " (" + strings.Join(faults, ", ") + ")"
		}
		again := strings.Join(append([]string{"pulumi up"}, r.Again...), " ")
		fmt.Fprintf(&b, "| %s%s | %s | %s | `%s` | %d |\n", r.What, with, r.Doing, read, again, r.Seconds)
	}

	return b.String()
}

// code sets a text apart that may hold backticks.
func code(text string) string {
	if strings.Contains(text, "`") {
		return "`` " + text + " ``"
	}

	return "`" + text + "`"
}

// TestReliabilityPage holds the page to the recorded run, and the record to the scenarios.
func TestReliabilityPage(t *testing.T) {
	path := filepath.Join("..", "docs", "reliability.md")
	run := readRun(t)
	if recording() {
		require.NoError(t, os.WriteFile(path, []byte(page(run)), 0o600))

		return
	}
	content, err := os.ReadFile(path)
	require.NoError(t, err)
	assert.Equal(t, page(run), string(content), "`make reliability` writes it from tests/testdata/faults/run.json")

	have := map[string][]string{}
	for _, r := range run {
		have[r.What+", "+r.Doing] = r.Says
	}
	for _, sc := range append(creations(), edits()...) {
		says, recorded := have[sc.what+", "+sc.doing]
		assert.Truef(t, recorded, "%s, %s: was not recorded", sc.what, sc.doing)
		assert.Equalf(t, sc.says, says, "%s, %s: was recorded with another text", sc.what, sc.doing)
	}
}
