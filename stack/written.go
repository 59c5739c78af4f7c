// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package stack

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/talos-proxmox/talos-proxmox/internal/check"
	"github.com/talos-proxmox/talos-proxmox/internal/yamltree"
)

// sourcePos describes where and how a value is written in the stack file.
type sourcePos struct {
	line   int
	secure bool   // as secure: <ciphertext>
	raw    string // the text of a scalar
	tag    string // what YAML reads it as
	quoted bool
}

// stackFile holds the stack file's part of the project.
type stackFile struct {
	// keys are the project's top-level keys.
	keys map[string]*yaml.Node
	// written is everything in it, by path.
	written map[string]sourcePos
	// stray are the lines of keys that stand beside config, where Pulumi reads none of them.
	stray map[string]int
}

// findFile returns the file that the given values were read from: the one that was named, else the stack's own. Where it
// does not hold exactly these values (an environment adds some, or somebody has edited it since), or nobody knows which
// one was named, lines and single secrets stay unknown.
func findFile(s Source, project string, values map[string]*yaml.Node) *stackFile {
	if s.Dir == "" || s.FileUnknown {
		return nil
	}
	secret := map[string]bool{}
	for _, key := range s.SecretKeys {
		secret[strings.TrimPrefix(key, project+":")] = true
	}
	path := s.File
	if path == "" {
		path = ownFile(s.Dir, s.Stack)
	}
	if f := readFile(path, project); f != nil && f.matches(values, secret) {
		return f
	}

	return nil
}

// ownFile returns the path of the file that Pulumi reads for a stack unless another is named.
func ownFile(dir, stack string) string {
	var project struct {
		StackConfigDir string `yaml:"stackConfigDir"`
	}
	if text, err := os.ReadFile(filepath.Join(dir, "Pulumi.yaml")); err == nil {
		_ = yaml.Unmarshal(text, &project) // Pulumi has read it, or there was no run
	}

	return filepath.Join(dir, project.StackConfigDir, "Pulumi."+stack[strings.LastIndex(stack, "/")+1:]+".yaml")
}

// readFile returns nil for a file that is no stack file of this project.
func readFile(path, project string) *stackFile {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil
	}

	return parseFile(text, project)
}

// besideConfig are the keys that Pulumi knows in a stack file beside config. Keys that begin with x- are left to
// the reader, for anchors.
var besideConfig = []string{"encryptionsalt", "encryptedkey", "secretsprovider", "environment"}

func parseFile(text []byte, project string) *stackFile {
	var document yaml.Node
	if err := yaml.Unmarshal(text, &document); err != nil || len(document.Content) == 0 {
		return nil
	}
	root := yamltree.Resolve(document.Content[0])
	if root.Kind != yaml.MappingNode {
		return nil
	}
	f := &stackFile{keys: map[string]*yaml.Node{}, written: map[string]sourcePos{}, stray: map[string]int{}}
	for i := 0; i+1 < len(root.Content); i += 2 {
		if key := root.Content[i]; key.Value != "config" && !slices.Contains(besideConfig, key.Value) && !strings.HasPrefix(key.Value, "x-") {
			f.stray[key.Value] = key.Line
			f.written[key.Value] = sourcePos{line: key.Line}
		}
	}
	config := child(root, "config")
	if config == nil || config.Kind != yaml.MappingNode {
		return f
	}
	for i := 0; i+1 < len(config.Content); i += 2 {
		name, ours := strings.CutPrefix(config.Content[i].Value, project+":")
		if !ours {
			f.written[config.Content[i].Value] = sourcePos{line: config.Content[i].Line}

			continue
		}
		f.keys[name] = config.Content[i+1]
		f.note(check.Key("", name), config.Content[i], config.Content[i+1])
	}

	return f
}

// note records a value and everything below it.
func (f *stackFile) note(path string, key, value *yaml.Node) {
	w := sourcePos{line: key.Line}
	switch {
	case isSecure(value):
		w.secure = true
	case value.Kind == yaml.ScalarNode:
		const quoted = yaml.DoubleQuotedStyle | yaml.SingleQuotedStyle | yaml.LiteralStyle | yaml.FoldedStyle
		w.raw, w.tag, w.quoted = value.Value, value.ShortTag(), value.Style&quoted != 0
		f.noteBlock(path, value)
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

// noteBlock records the lines of what is YAML in a text that is written line by line.
func (f *stackFile) noteBlock(path string, text *yaml.Node) {
	var document yaml.Node
	if text.Style&yaml.LiteralStyle == 0 || yaml.Unmarshal([]byte(text.Value), &document) != nil || len(document.Content) == 0 {
		return
	}
	f.noteLines(path, document.Content[0], text.Line)
}

// noteLines records the lines of a tree that stands below another line.
func (f *stackFile) noteLines(path string, node *yaml.Node, above int) {
	for i, item := range node.Content {
		at := check.Index(path, i)
		if node.Kind == yaml.MappingNode {
			if i%2 == 0 {
				continue
			}
			at = check.Key(path, node.Content[i-1].Value)
			f.written[at] = sourcePos{line: above + node.Content[i-1].Line}
		} else {
			f.written[at] = sourcePos{line: above + item.Line}
		}
		f.noteLines(at, item, above)
	}
}

// lineOf returns the line of the path, or of the nearest block around it that is written.
func (f *stackFile) lineOf(path string) int {
	for ; path != ""; path = check.Parent(path) {
		if w, ok := f.written[path]; ok {
			return w.line
		}
	}

	return 0
}

// matches reports whether the file holds the values, as far as they are not secure, and is secure where they are.
func (f *stackFile) matches(values map[string]*yaml.Node, secret map[string]bool) bool {
	if len(f.keys)+len(f.stray) == 0 {
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
		if !ok || holdsSecure(node) != secret[name] || !same(node, given) {
			return false
		}
	}

	return true
}

func same(file, given *yaml.Node) bool {
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

// holdsSecure reports whether something below a node is secure.
func holdsSecure(node *yaml.Node) bool {
	return isSecure(node) || slices.ContainsFunc(node.Content, holdsSecure)
}

// isSecure reports whether a node is secure: <ciphertext>.
func isSecure(node *yaml.Node) bool {
	return node.Kind == yaml.MappingNode && len(node.Content) == 2 &&
		node.Content[0].Value == "secure" && node.Content[1].Kind == yaml.ScalarNode
}

// child returns the value of a mapping's key, or nil.
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
