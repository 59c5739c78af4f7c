// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package chaos_test

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/talos-proxmox/talos-proxmox/tests/chaos"
)

// sample are the seeds that every run of the tests tries, with few steps each.
var sample = []uint64{1}

const sampleSteps = 6

// TestChaos runs the scripts of some seeds, or those that the environment names: CHAOS_SEED and CHAOS_STEPS,
// or a script in the file CHAOS_SCRIPT. With CHAOS_SHRINK=1 a script that fails is made short.
func TestChaos(t *testing.T) {
	t.Parallel()

	for name, script := range scripts(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			problems := run(t, script)
			if len(problems) == 0 {
				return
			}
			if os.Getenv("CHAOS_SHRINK") == "1" {
				script = chaos.Shrink(script, func(s chaos.Script) bool { return len(run(t, s)) > 0 })
			}
			t.Errorf("%s\n\nthe script, to be run again with CHAOS_SCRIPT=FILE:\n%s", strings.Join(problems, "\n"), script)
		})
	}
}

// scripts returns what is to be run, by name.
func scripts(t *testing.T) map[string]chaos.Script {
	t.Helper()

	if file := os.Getenv("CHAOS_SCRIPT"); file != "" {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		script, err := chaos.ParseScript(string(text))
		require.NoError(t, err)

		return map[string]chaos.Script{filepath.Base(file): script}
	}
	steps := sampleSteps
	if text := os.Getenv("CHAOS_STEPS"); text != "" {
		n, err := strconv.Atoi(text)
		require.NoError(t, err)
		steps = n
	}
	seeds := sample
	if text := os.Getenv("CHAOS_SEED"); text != "" {
		seeds = nil
		for _, word := range strings.Split(text, ",") {
			seed, err := strconv.ParseUint(word, 10, 64)
			require.NoError(t, err)
			seeds = append(seeds, seed)
		}
	}
	scripts := map[string]chaos.Script{}
	for _, seed := range seeds {
		scripts["seed "+strconv.FormatUint(seed, 10)] = chaos.Generate(seed, steps)
	}

	return scripts
}

// run runs a script in a site of its own.
func run(t *testing.T, script chaos.Script) []string {
	t.Helper()

	root, err := filepath.Abs("../..")
	require.NoError(t, err)
	require.FileExists(t, filepath.Join(root, "bin", "lab"), "run make tools")
	runner := chaos.Runner{Root: root, Dir: t.TempDir(), Log: t.Logf}
	problems, err := runner.Run(t.Context(), script)
	require.NoError(t, err)

	return problems
}

func TestScriptsAreReadAsTheyAreWritten(t *testing.T) {
	t.Parallel()

	for seed := range uint64(50) {
		script := chaos.Generate(seed, 30)
		read, err := chaos.ParseScript(script.String())
		require.NoError(t, err)
		assert.Equal(t, script.String(), read.String())
		assert.Equal(t, script.String(), chaos.Generate(seed, 30).String(), "a seed makes the same script again")
	}

	_, err := chaos.ParseScript("cluster cp-1\nrum up")
	assert.EqualError(t, err, `line 2: unknown step "rum": write cluster, edit, run, hand, fault or clear`)
	_, err = chaos.ParseScript("run up")
	assert.ErrorContains(t, err, "the script names no nodes")
}

func TestShrink(t *testing.T) {
	t.Parallel()

	script := chaos.Generate(3, 40)
	needed := []string{script.Steps[7].String(), script.Steps[23].String()}
	runs := 0
	short := chaos.Shrink(script, func(s chaos.Script) bool {
		runs++
		text := s.String()

		return strings.Contains(text, needed[0]) && strings.Contains(text, needed[1])
	})
	assert.LessOrEqual(t, len(short.Steps), 2)
	assert.Less(t, runs, 200)
}
