// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package stack

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/talos-proxmox/talos-proxmox/internal/check"
)

// written is how a value stands in the stack file.
type written struct {
	line   int
	secure bool   // as secure: <ciphertext>
	raw    string // the text of a scalar
	tag    string // what YAML reads it as
	quoted bool
}

// stackFile is the stack file's part of the project.
type stackFile struct {
	// keys are the project's top-level keys.
	keys map[string]*yaml.Node
	// written is everything in it, by path.
	written map[string]written
	// around are the anchors that are being noted, so that one which holds itself ends.
	around map[*yaml.Node]bool
}

// depth is how far below the project directory a stack file is looked for.
const depth = 4

// findFile looks for the file whose values are the given ones: the stack's own, else one given to
// the command line as --config-file. Without a match lines and single secrets stay unknown.
func findFile(s Source, values map[string]*yaml.Node) *stackFile {
	if s.Dir == "" {
		return nil
	}
	name := s.Stack[strings.LastIndex(s.Stack, "/")+1:]
	if f := readFile(filepath.Join(s.Dir, "Pulumi."+name+".yaml")); f != nil && f.matches(values) {
		return f
	}

	var found *stackFile
	_ = filepath.WalkDir(s.Dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return nil //nolint:nilerr // a directory that cannot be read holds no stack file for us
		}
		if entry.IsDir() {
			rel, _ := filepath.Rel(s.Dir, path)
			if rel != "." && (strings.HasPrefix(entry.Name(), ".") || strings.Count(rel, string(filepath.Separator)) >= depth) {
				return filepath.SkipDir
			}

			return nil
		}
		if ok, _ := filepath.Match("Pulumi.*.yaml", entry.Name()); !ok {
			return nil
		}
		if f := readFile(path); f != nil && f.matches(values) {
			found = f

			return filepath.SkipAll
		}

		return nil
	})

	return found
}

// readFile returns nil for a file that is no stack file of this project.
func readFile(path string) *stackFile {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil
	}

	return parseFile(text)
}

func parseFile(text []byte) *stackFile {
	var document yaml.Node
	if err := yaml.Unmarshal(text, &document); err != nil || len(document.Content) == 0 {
		return nil
	}
	config := child(document.Content[0], "config")
	if config == nil || config.Kind != yaml.MappingNode {
		return nil
	}
	f := &stackFile{keys: map[string]*yaml.Node{}, written: map[string]written{}, around: map[*yaml.Node]bool{}}
	for i := 0; i+1 < len(config.Content); i += 2 {
		name, ours := strings.CutPrefix(config.Content[i].Value, Project+":")
		if !ours {
			continue
		}
		f.keys[name] = config.Content[i+1]
		f.note(name, config.Content[i], config.Content[i+1])
	}

	return f
}

// note records a value and everything below it.
func (f *stackFile) note(path string, key, value *yaml.Node) {
	if value.Kind == yaml.AliasNode {
		value = value.Alias
		if f.around[value] {
			return
		}
	}
	if value.Anchor != "" {
		f.around[value] = true
		defer delete(f.around, value)
	}
	w := written{line: key.Line}
	switch {
	case isSecure(value):
		w.secure = true
	case value.Kind == yaml.ScalarNode:
		const quoted = yaml.DoubleQuotedStyle | yaml.SingleQuotedStyle | yaml.LiteralStyle | yaml.FoldedStyle
		w.raw, w.tag, w.quoted = value.Value, value.ShortTag(), value.Style&quoted != 0
	case value.Kind == yaml.MappingNode:
		for i := 0; i+1 < len(value.Content); i += 2 {
			f.note(check.Key(path, value.Content[i].Value), value.Content[i], value.Content[i+1])
		}
	case value.Kind == yaml.SequenceNode:
		for i, item := range value.Content {
			f.note(check.Index(path, i), item, item)
		}
	}
	f.written[path] = w
}

// lineOf is the line of the path, or of the nearest block around it that is written.
func (f *stackFile) lineOf(path string) int {
	for ; path != ""; path = check.Parent(path) {
		if w, ok := f.written[path]; ok {
			return w.line
		}
	}

	return 0
}

// matches reports whether the file holds the values, as far as they are not secure.
func (f *stackFile) matches(values map[string]*yaml.Node) bool {
	if len(f.keys) == 0 {
		return false
	}
	for name, given := range values {
		// Pulumi.yaml gives keys that are not written as empty blocks.
		if _, ok := f.keys[name]; !ok && (given.Kind != yaml.MappingNode || len(given.Content) > 0) {
			return false
		}
	}
	for name, node := range f.keys {
		given, ok := values[name]
		if !ok || !same(node, given) {
			return false
		}
	}

	return true
}

func same(file, given *yaml.Node) bool {
	if file.Kind == yaml.AliasNode {
		file = file.Alias
	}
	switch {
	case isSecure(file):
		return true // what is encrypted cannot be compared
	case file.Kind != given.Kind:
		return false
	case file.Kind == yaml.ScalarNode:
		return sameScalar(file, given)
	case len(file.Content) != len(given.Content):
		return false
	case file.Kind == yaml.SequenceNode:
		for i := range file.Content {
			if !same(file.Content[i], given.Content[i]) {
				return false
			}
		}

		return true
	default:
		for i := 0; i+1 < len(file.Content); i += 2 {
			other := child(given, file.Content[i].Value)
			if other == nil || !same(file.Content[i+1], other) {
				return false
			}
		}

		return true
	}
}

// sameScalar compares what both decode to; a date is compared by nothing, since Pulumi rewrites it.
func sameScalar(file, given *yaml.Node) bool {
	if file.ShortTag() == "!!timestamp" {
		return true
	}
	var a, b any
	if file.Decode(&a) != nil || given.Decode(&b) != nil {
		return file.Value == given.Value
	}
	if x, ok := asFloat(a); ok {
		y, number := asFloat(b)

		return number && x == y
	}

	return a == b
}

func asFloat(v any) (float64, bool) {
	switch n := v.(type) {
	case int:
		return float64(n), true
	case int64:
		return float64(n), true
	case uint64:
		return float64(n), true
	case float64:
		return n, true
	default:
		return 0, false
	}
}

// isSecure reports whether a node is secure: <ciphertext>.
func isSecure(node *yaml.Node) bool {
	return node.Kind == yaml.MappingNode && len(node.Content) == 2 &&
		node.Content[0].Value == "secure" && node.Content[1].Kind == yaml.ScalarNode
}

// child is the value of a mapping's key, or nil.
func child(node *yaml.Node, key string) *yaml.Node {
	if node.Kind != yaml.MappingNode {
		return nil
	}
	for i := 0; i+1 < len(node.Content); i += 2 {
		if node.Content[i].Value == key {
			return node.Content[i+1]
		}
	}

	return nil
}
