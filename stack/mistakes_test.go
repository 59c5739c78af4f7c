// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package stack_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"github.com/talos-proxmox/talos-proxmox/internal/check"
	"github.com/talos-proxmox/talos-proxmox/spec"
	"github.com/talos-proxmox/talos-proxmox/stack"
)

// mistake describes one edit of a base stack.
type mistake struct {
	base  string
	edits []string
	// at is where the one problem is told; "ok" where there is none, "two" where two mistakes had to be made.
	at string
}

// mistakes reads testdata/mistakes.txt.
func mistakes(t testing.TB) []mistake {
	t.Helper()

	return mistakesIn(t, "testdata/mistakes.txt")
}

// mistakesIn reads a file of edits.
func mistakesIn(t testing.TB, file string) []mistake {
	t.Helper()
	base := ""
	var all []mistake
	for line := range strings.Lines(read(t, file)) {
		line = strings.TrimSpace(line)
		name, isBase := strings.CutPrefix(line, "BASE ")
		switch {
		case line == "" || line[0] == '#':
		case isBase:
			base = name
		default:
			edits, at, ok := strings.Cut(line, " @@ ")
			require.True(t, ok, line)
			all = append(all, mistake{base, strings.Split(edits, " ;; "), at})
		}
	}

	return all
}

// secretInMistakes stands in every credential of testdata/mistakes.txt.
const secretInMistakes = "s3cr3t"

// TestMistakes makes one mistake in each of a thousand stacks: each is refused, with one problem, at the setting and with the line
// where it was made, before anything is registered, and without a credential. The right ones among them pass.
func TestMistakes(t *testing.T) {
	t.Parallel()
	right, refused := 0, 0
	for _, m := range mistakes(t) {
		problems := m.problems(t)
		name := m.base + ": " + strings.Join(m.edits, " ;; ")
		if m.at == "ok" {
			assert.Empty(t, problems, name)
			right++

			continue
		}
		refused++
		if m.at == "two" {
			assert.Len(t, problems, 2, name)

			continue
		}
		if !assert.Len(t, problems, 1, name) {
			continue
		}
		p := problems[0]
		assert.Equal(t, m.at, p.Path, name)
		assert.Positive(t, p.Line, name)
		assert.NotContains(t, strings.ToLower(p.String()), secretInMistakes, name)
	}
	t.Logf("%d mistakes refused, each once, at its place; %d right ones passed", refused, right)
}

// problems loads the stack, has Talos look at it, and returns what is told.
func (m mistake) problems(t testing.TB) []spec.Problem {
	t.Helper()
	dir := t.TempDir()
	written, err := yaml.Marshal(m.file(t, dir))
	require.NoError(t, err)
	environment := map[string]string{}
	for _, e := range m.edits {
		if name, ok := strings.CutPrefix(e, "ENV "); ok {
			name, text, _ := strings.Cut(name, "=")
			environment[name] = text
		}
	}

	return loaded(t, dir, string(written), environment)
}

// file returns the base stack with the edits laid over it; files of the project are written to the directory.
func (m mistake) file(t testing.TB, dir string) map[string]any {
	t.Helper()
	var file map[string]any
	require.NoError(t, yaml.Unmarshal([]byte(read(t, baseFile(m.base))), &file))
	for _, e := range m.edits {
		path, text, ok := strings.Cut(e, "=")
		require.True(t, ok, e)
		if strings.HasPrefix(path, "ENV ") {
			continue
		}
		var value any
		require.NoError(t, yaml.Unmarshal([]byte(text), &value), e)
		lay(t, file, dir, path, value)
	}

	return file
}

// loaded loads a stack from a project's directory, has Talos look at it, and returns what is told.
func loaded(t testing.TB, dir, text string, environment map[string]string) []spec.Problem {
	t.Helper()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "Pulumi.test.yaml"), []byte(text), 0o600))
	s := source(t, text)
	s.Dir = dir
	s.Environment = func(name string) string { return environment[name] }
	read, err := stack.Load(s)
	if err == nil {
		err = read.Check(t.Context())
	}
	if err == nil {
		return nil
	}
	var invalid *spec.InvalidError
	require.True(t, errors.As(err, &invalid), "%v", err)

	return invalid.Problems
}

// lay makes one edit.
func lay(t testing.TB, file map[string]any, dir, path string, value any) {
	t.Helper()
	config, _ := file["config"].(map[string]any)
	if name, ok := strings.CutPrefix(path, "FILE "); ok {
		text, _ := value.(string)
		require.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o700))
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))

		return
	}
	if key, ok := strings.CutPrefix(path, "TOP "); ok {
		file[key] = value

		return
	}
	if key, ok := strings.CutPrefix(path, "KEY "); ok {
		config[key] = value

		return
	}
	elements := check.Elements(path)
	elements[0] = stack.Project + ":" + elements[0]
	// What is said of a node or of its network is laid over the rest of it; everything else replaces what was there.
	over := strings.HasPrefix(path, "nodes.") && len(elements) <= 4 && !strings.Contains(path, "disks")
	setAt(config, elements, value, over)
}

func setAt(tree map[string]any, path []string, value any, over bool) {
	name := path[0]
	below, isTree := tree[name].(map[string]any)
	if len(path) > 1 {
		if !isTree {
			below = map[string]any{}
			tree[name] = below
		}
		setAt(below, path[1:], value, over)

		return
	}
	switch more, ok := value.(map[string]any); {
	case value == nil:
		delete(tree, name)
	case over && ok && isTree:
		for key, v := range more {
			setAt(below, []string{key}, v, over)
		}
	default:
		tree[name] = value
	}
}

// baseFile returns the file of a base, which may be a stack that ships.
func baseFile(name string) string {
	if path, ok := shipped[name]; ok {
		return path
	}

	return "testdata/bases/" + name + ".yaml"
}
