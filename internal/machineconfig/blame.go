// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package machineconfig

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/siderolabs/talos/pkg/machinery/config/configpatcher"
	"github.com/siderolabs/talos/pkg/machinery/config/types/v1alpha1"
	"go.yaml.in/yaml/v3"

	"github.com/talos-proxmox/talos-proxmox/internal/check"
	"github.com/talos-proxmox/talos-proxmox/internal/machineconfig/explain"
)

// patchError reports a problem with a field of a patch.
type patchError struct {
	// document is the document's place in the patch.
	document int
	// field are the names down to what is wrong; empty where that is not known.
	field   []string
	message string
}

// Error returns the problem.
func (e *patchError) Error() string { return e.message }

// blame returns the path of a problem with a patch: the field, where the patch stands in the settings; else the setting that
// names the file, whose line and field the message then has.
func (s source) blame(text []byte, found *patchError) (path, message string) {
	switch {
	case s.File != nil && text == nil:
		return s.path + ".file", found.message
	case s.File != nil:
		where := *s.File
		if line := lineOf(text, found.document, found.field); line > 0 {
			where += fmt.Sprintf(", line %d", line)
		}
		if len(found.field) > 0 {
			where += ", " + fieldPath("", found.field)
		}

		return s.path + ".file", where + ": " + found.message
	case s.Inline == nil:
		return s.path, found.message
	case found.document > 0:
		where := fmt.Sprintf("document %d", found.document+1)
		if len(found.field) > 0 {
			where += ", " + fieldPath("", found.field)
		}

		return s.path + ".inline", where + ": " + found.message
	default:
		return fieldPath(s.path+".inline", found.field), found.message
	}
}

func fieldPath(path string, field []string) string {
	for _, name := range field {
		path = check.Key(path, name)
	}

	return path
}

// documentsOf returns the documents of a YAML text, as far as they can be read.
func documentsOf(text []byte) []*yaml.Node {
	var all []*yaml.Node
	for decoder := yaml.NewDecoder(bytes.NewReader(text)); ; {
		var document yaml.Node
		if decoder.Decode(&document) != nil || len(document.Content) == 0 {
			return all
		}
		all = append(all, document.Content[0])
	}
}

// lineOf returns the line of a field in a text; 0 where it is not there.
func lineOf(text []byte, document int, field []string) int {
	all := documentsOf(text)
	if document >= len(all) {
		return 0
	}
	node, line := all[document], all[document].Line
	for _, name := range field {
		at := -1
		for i := 0; i+1 < len(node.Content) && node.Kind == yaml.MappingNode; i += 2 {
			if node.Content[i].Value == name {
				at = i
			}
		}
		if at < 0 {
			return line
		}
		line, node = node.Content[at].Line, node.Content[at+1]
	}

	return line
}

// unreadable returns what is wrong with each document of a patch that cannot be read.
func unreadable(text []byte, whole error) []*patchError {
	documents := documentsOf(text)
	if len(documents) == 0 || documents[0].Kind != yaml.MappingNode {
		return []*patchError{{message: "the patch is not one that Talos reads: " + explain.Load(whole)}}
	}
	var all []*patchError
	for i, document := range documents {
		one, err := yaml.Marshal(document)
		if err != nil {
			continue
		}
		if _, err = configpatcher.LoadPatch(one); err == nil {
			continue
		}
		if unknown := unknownFields(i, document, err); len(unknown) > 0 {
			all = append(all, unknown...)

			continue
		}
		all = append(all, &patchError{document: i, message: "the patch is not one that Talos reads: " + explain.Load(err)})
	}
	if len(all) == 0 {
		return []*patchError{{message: "the patch is not one that Talos reads: " + explain.Load(whole)}}
	}

	return all
}

// unknownFields returns the fields that the reader does not know, each once: not what is below one.
func unknownFields(at int, document *yaml.Node, err error) []*patchError {
	leaves, ok := explain.UnknownFields(err)
	if !ok {
		return nil
	}
	var all []*patchError
	seen := map[string]bool{}
	for _, leaf := range leaves {
		field, hint := leaf, ": remove it"
		if child(document, "kind") == nil {
			field, hint = firstUnknown(leaf)
		}
		if name := fieldPath("", field); !seen[name] {
			seen[name] = true
			all = append(all, &patchError{document: at, field: field, message: "is not a field that Talos knows" + hint})
		}
	}

	return all
}

// firstUnknown cuts a path at the first field that the machine configuration does not have, and says what was probably meant.
func firstUnknown(leaf []string) (field []string, hint string) {
	t := reflect.TypeFor[v1alpha1.Config]()
	for i, name := range leaf {
		for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice {
			t = t.Elem()
		}
		if t.Kind() == reflect.Map {
			t = t.Elem()

			continue
		}
		if t.Kind() != reflect.Struct {
			return leaf, ": remove it"
		}
		fields := yamlFields(t)
		next, known := fields[name]
		if !known {
			if best := check.Nearest(name, sortedKeys(fields)); best != "" {
				return leaf[:i+1], fmt.Sprintf("; did you mean %q?", best)
			}

			return leaf[:i+1], ": remove it"
		}
		t = next
	}

	return leaf, ": remove it"
}

// yamlFields returns the types of a struct's fields by their names in YAML.
func yamlFields(t reflect.Type) map[string]reflect.Type {
	all := map[string]reflect.Type{}
	for i := range t.NumField() {
		f := t.Field(i)
		name, options, _ := strings.Cut(f.Tag.Get("yaml"), ",")
		switch {
		case strings.Contains(options, "inline"):
			inner := f.Type
			if inner.Kind() == reflect.Pointer {
				inner = inner.Elem()
			}
			for name, t := range yamlFields(inner) {
				all[name] = t
			}
		case name != "" && name != "-":
			all[name] = f.Type
		}
	}

	return all
}

// child returns the value of a mapping's key, or nil.
func child(node *yaml.Node, key string) *yaml.Node {
	for i := 0; i+1 < len(node.Content) && node.Kind == yaml.MappingNode; i += 2 {
		if node.Content[i].Value == key {
			return node.Content[i+1]
		}
	}

	return nil
}

// causeOf returns the field of a patch that a complaint about the patched configuration names, or whose value it names.
func causeOf(text []byte, complaint string) (document int, field []string) {
	best := 0
	for i, root := range documentsOf(text) {
		walkFields(root, nil, func(path []string, value *yaml.Node) {
			score := 0
			dotted := strings.Join(path, ".")
			switch {
			case len(path) > 1 && strings.Contains(complaint, dotted):
				score = 1000 + len(dotted)
			case value.Kind == yaml.ScalarNode && len(value.Value) > 3 && strings.Contains(complaint, value.Value):
				score = 500 + len(value.Value)
			case len(path) > 1 && len(path[len(path)-1]) > 3 && strings.Contains(complaint, path[len(path)-1]):
				score = 100 + len(path)
			}
			if score > best {
				best, document, field = score, i, slices.Clone(path)
			}
		})
	}

	return document, field
}

// walkFields visits every field of a tree of mappings.
func walkFields(node *yaml.Node, path []string, visit func(path []string, value *yaml.Node)) {
	switch node.Kind {
	case yaml.MappingNode:
		for i := 0; i+1 < len(node.Content); i += 2 {
			below := append(slices.Clone(path), node.Content[i].Value)
			visit(below, node.Content[i+1])
			walkFields(node.Content[i+1], below, visit)
		}
	case yaml.SequenceNode:
		for _, item := range node.Content {
			if item.Kind == yaml.ScalarNode {
				visit(path, item)
			} else {
				walkFields(item, path, visit)
			}
		}
	}
}

// patchText returns the text of a patch, for problems that say where in it something is wrong.
func (in Input) patchText(s source) []byte {
	if s.Inline != nil {
		return []byte(*s.Inline)
	}
	if s.File == nil || in.ReadFile == nil {
		return nil
	}
	text, err := in.ReadFile(*s.File)
	if err != nil {
		return nil
	}

	return text
}

// located returns the problems in an error about a patch.
func located(err error) []*patchError {
	var joined interface{ Unwrap() []error }
	if errors.As(err, &joined) {
		var all []*patchError
		for _, e := range joined.Unwrap() {
			all = append(all, located(e)...)
		}

		return all
	}
	var one *patchError
	if errors.As(err, &one) {
		return []*patchError{one}
	}

	return []*patchError{{message: cmp.Or(err.Error(), "cannot be read")}}
}
