// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package stack_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/talos-proxmox/talos-proxmox/stack"
)

const broken = `# comment
config:
  aws:region: nowhere
  talos-proxmox:cluster:
    name: Broken
`

func TestLinesOfAnotherFile(t *testing.T) {
	t.Parallel()
	s := source(t, broken)
	s.Dir = t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(s.Dir, "Pulumi.test.yaml"), []byte("# longer\n"+broken), 0o600))
	s.File = filepath.Join(s.Dir, "another.yaml")
	require.NoError(t, os.WriteFile(s.File, []byte(broken), 0o600))
	// What Pulumi.yaml declares comes as empty blocks.
	s.Values["talos-proxmox:nodes"] = "{}"
	_, err := stack.Load(s)
	require.ErrorContains(t, err, "\n  cluster.name (line 5): \"Broken\" is no name")
}

func TestLinesWhereTheProjectKeepsItsStackFiles(t *testing.T) {
	t.Parallel()
	s := source(t, broken)
	s.Dir = t.TempDir()
	require.NoError(t, os.Mkdir(filepath.Join(s.Dir, "stacks"), 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(s.Dir, "Pulumi.yaml"), []byte("{name: talos-proxmox, runtime: go, stackConfigDir: stacks}"), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(s.Dir, "stacks", "Pulumi.test.yaml"), []byte(broken), 0o600))
	_, err := stack.Load(s)
	require.ErrorContains(t, err, "\n  cluster.name (line 5): \"Broken\" is no name")
}

// TestNoLinesOfAFileThatWasNotNamed holds that a file of the same values is none that can be pointed at.
func TestNoLinesOfAFileThatWasNotNamed(t *testing.T) {
	t.Parallel()
	for name, edit := range map[string]func(*stack.Source){
		"another was named, and is gone":   func(s *stack.Source) { s.File = filepath.Join(s.Dir, "gone.yaml") },
		"nobody knows which one was named": func(s *stack.Source) { s.FileUnknown = true },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := source(t, broken)
			s.Dir = t.TempDir()
			require.NoError(t, os.WriteFile(filepath.Join(s.Dir, "Pulumi.test.yaml"), []byte(broken), 0o600))
			edit(&s)
			_, err := stack.Load(s)
			require.ErrorContains(t, err, "\n  cluster.name: \"Broken\" is no name")
			assert.NotContains(t, err.Error(), "line")
		})
	}
}

func TestNoLinesWithoutAFileOfTheseValues(t *testing.T) {
	t.Parallel()
	s := source(t, broken)
	s.Dir = t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(s.Dir, "Pulumi.test.yaml"), []byte("config: {talos-proxmox:cluster: {name: other}}"), 0o600))
	_, err := stack.Load(s)
	require.ErrorContains(t, err, "\n  cluster.name: \"Broken\" is no name")
	assert.NotContains(t, err.Error(), "line")
}

// TestSurprises reads values that YAML, or Pulumi, reads as something else than what is written: the
// text of the file, and what Pulumi 3.259 makes of it.
func TestSurprises(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ written, given, want string }{
		"octal":            {"vmId: 0144", `"vmId":100`, `nodes.a.vmId (line 3): YAML reads 0144 as an octal number, which is 100: write 144 or 100, whichever is meant`},
		"octal, new":       {"vmId: 0o144", `"vmId":100`, `nodes.a.vmId (line 3): YAML reads 0o144 as the number 100: write that`},
		"not octal":        {"vmId: 0800", `"vmId":800`, `nodes.a.vmId (line 3): YAML reads 0800 as the number 800: write it without leading zeros`},
		"hexadecimal":      {"vmId: 0x64", `"vmId":100`, `nodes.a.vmId (line 3): YAML reads 0x64 as the number 100: write that`},
		"underscore":       {"memory: 8_192", `"memory":8192`, `nodes.a.memory (line 3): YAML reads 8_192 as the number 8192: write that`},
		"exponent":         {"cpu: 1e1", `"cpu":10`, ""},
		"trailing zero":    {"zone: 1.10", `"zone":1.1`, `nodes.a.zone (line 3): must be text, not a number with a fraction: put it in quotes, "1.10"`},
		"date":             {"description: 2024-01-01", `"description":"2024-01-01 00:00:00 +0000 UTC"`, `nodes.a.description (line 3): YAML reads the date 2024-01-01 as something else: put it in quotes, "2024-01-01"`},
		"on":               {"onBoot: on", `"onBoot":"on"`, `nodes.a.onBoot (line 3): must be true or false, not text: write true`},
		"no":               {"zone: no", `"zone":"no"`, ""},
		"quoted number":    {`description: "0144"`, `"description":"0144"`, ""},
		"the word null":    {"zone: ~", `"zone":null`, `nodes.a.zone (line 3): is empty: write a value, {} for a block without settings, or remove the key`},
		"boolean as text":  {"zone: True", `"zone":true`, `nodes.a.zone (line 3): must be text, not true or false: put it in quotes, "True"`},
		"colons in a text": {"description: 12:30:45", `"description":"12:30:45"`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := stack.Source{Stack: "test", Dir: t.TempDir(), Values: map[string]string{"talos-proxmox:nodes": `{"a":{` + c.given + `}}`}}
			text := "config:\n  talos-proxmox:nodes:\n    a: {" + c.written + "}\n"
			require.NoError(t, os.WriteFile(filepath.Join(s.Dir, "Pulumi.test.yaml"), []byte(text), 0o600))
			_, err := stack.Load(s)
			require.Error(t, err)
			key, _, _ := strings.Cut(c.written, ":")
			var got []string
			for line := range strings.Lines(err.Error()) {
				if strings.HasPrefix(line, "  nodes.a."+key) {
					got = append(got, strings.TrimSpace(line))
				}
			}
			if c.want == "" {
				assert.Empty(t, got)

				return
			}
			assert.Equal(t, []string{c.want}, got)
		})
	}
}
