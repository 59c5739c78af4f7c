// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package stack_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"github.com/talos-proxmox/talos-proxmox/internal/check"
	"github.com/talos-proxmox/talos-proxmox/spec"
	"github.com/talos-proxmox/talos-proxmox/stack"
)

// place names one key of a stack file: the entry i of a mapping, and the type of its value.
type place struct {
	path  string
	in    *yaml.Node
	i     int
	named bool // the user chose the key
	value reflect.Type
	field *spec.Field
}

// places returns all keys of a stack file that the types know.
func places(path string, node *yaml.Node, t reflect.Type) []place {
	var found []place
	switch {
	case t == reflect.TypeFor[spec.Text](), t == reflect.TypeFor[spec.Secret]():
	case t.Kind() == reflect.Pointer:
		return places(path, node, t.Elem())
	case t.Kind() == reflect.Slice:
		for i, item := range node.Content {
			found = append(found, places(check.Index(path, i), item, t.Elem())...)
		}
	case t.Kind() == reflect.Struct:
		for _, f := range spec.Fields(t) {
			for i := 0; i+1 < len(node.Content); i += 2 {
				if node.Content[i].Value == f.Name {
					at := check.Join(path, f.Name)
					found = append(found, place{at, node, i, false, f.Type, &f})
					found = append(found, places(at, node.Content[i+1], f.Type)...)
				}
			}
		}
	case t.Kind() == reflect.Map:
		for i := 0; i+1 < len(node.Content); i += 2 {
			at := check.Key(path, node.Content[i].Value)
			found = append(found, place{at, node, i, true, t.Elem(), nil})
			found = append(found, places(at, node.Content[i+1], t.Elem())...)
		}
	}

	return found
}

// mutations are ways to break a key; each returns false when it does not apply.
var mutations = map[string]func(p place) (string, bool){
	"rename": func(p place) (string, bool) {
		name := p.in.Content[p.i].Value + "Q"
		if p.named {
			name = "!! " + name
		}
		p.in.Content[p.i] = &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: name}

		return check.Key(check.Parent(p.path), name), true
	},
	"wrong type": func(p place) (string, bool) {
		wrong := &yaml.Node{Kind: yaml.SequenceNode, Tag: "!!seq", Content: []*yaml.Node{{Kind: yaml.MappingNode, Tag: "!!map"}}}
		if p.value == reflect.TypeFor[spec.Text]() {
			wrong = &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!int", Value: "12"}
		} else if p.value.Kind() == reflect.Slice {
			wrong = &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map"}
		}
		p.in.Content[p.i+1] = wrong

		return p.path, true
	},
	"scalar of another type": func(p place) (string, bool) {
		wrong := &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!bool", Value: "true"}
		if p.value.Kind() == reflect.Bool {
			wrong = &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: "maybe", Style: yaml.DoubleQuotedStyle}
		}
		p.in.Content[p.i+1] = wrong

		return p.path, true
	},
	"nothing": func(p place) (string, bool) {
		p.in.Content[p.i+1] = &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!null"}

		return p.path, true
	},
	"out of range": func(p place) (string, bool) {
		value := &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!int", Value: "-1"}
		switch {
		case p.field != nil && p.field.Struct.Tag.Get("enum") != "" && p.value.Kind() == reflect.String:
			value = &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: "nonsense"}
		case p.value == reflect.TypeFor[spec.Duration]():
			value = &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: "-1s"}
		case p.value.Kind() == reflect.String && !p.named:
			value = &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: "", Style: yaml.DoubleQuotedStyle}
			if p.value == reflect.TypeFor[spec.Text]() {
				return "", false
			}
		case p.value.Kind() != reflect.Int:
			return "", false
		}
		p.in.Content[p.i+1] = value

		return p.path, true
	},
	"duplicate": func(p place) (string, bool) {
		p.in.Content = append(p.in.Content, p.in.Content[p.i], p.in.Content[p.i+1])

		return p.path, true
	},
}

// TestMutations breaks every key of every shipped stack in every way and demands an error that
// names its path.
func TestMutations(t *testing.T) {
	t.Parallel()
	for name, file := range shipped {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			text := read(t, file)
			count := 0
			for kind, mutate := range mutations {
				for i := range len(configPlaces(t, document(t, text))) {
					doc := document(t, text)
					want, applies := mutate(configPlaces(t, doc)[i])
					if !applies {
						continue
					}
					count++
					assertNamed(t, doc, want, kind)
				}
			}
			t.Logf("%d mutations", count)
		})
	}
}

func document(t *testing.T, text string) *yaml.Node {
	t.Helper()
	var doc yaml.Node
	require.NoError(t, yaml.Unmarshal([]byte(text), &doc))

	return &doc
}

// configPlaces returns the places below the project's keys; the keys themselves are places too.
func configPlaces(t *testing.T, doc *yaml.Node) []place {
	t.Helper()
	config := doc.Content[0].Content[1]
	var found []place
	for _, f := range spec.Fields(reflect.TypeFor[stack.File]()) {
		for i := 0; i+1 < len(config.Content); i += 2 {
			if config.Content[i].Value == stack.Project+":"+f.Name {
				found = append(found, places(f.Name, config.Content[i+1], f.Type)...)
			}
		}
	}

	return found
}

// assertNamed loads the document and demands a problem at the path, or below it.
func assertNamed(t *testing.T, doc *yaml.Node, path, kind string) {
	t.Helper()
	out, err := yaml.Marshal(doc)
	require.NoError(t, err)
	s := stack.Source{Stack: "test", Dir: t.TempDir(), Values: map[string]string{}}
	require.NoError(t, os.WriteFile(filepath.Join(s.Dir, "Pulumi.test.yaml"), out, 0o600))
	config := doc.Content[0].Content[1]
	for i := 0; i+1 < len(config.Content); i += 2 {
		s.Values[config.Content[i].Value] = asJSON(t, config.Content[i+1])
	}

	_, err = stack.Load(s)
	var invalid *spec.InvalidError
	if !assert.True(t, errors.As(err, &invalid), "%s of %s was accepted", kind, path) {
		return
	}
	for _, p := range invalid.Problems {
		if p.Path == path || strings.HasPrefix(p.Path, path+".") || strings.HasPrefix(p.Path, path+"[") {
			return
		}
	}
	assert.Fail(t, "not named", "%s of %s: %v", kind, path, err)
}

// asJSON writes a node as JSON, keys that stand there twice included.
func asJSON(t *testing.T, node *yaml.Node) string {
	t.Helper()
	var parts []string
	switch node.Kind {
	case yaml.MappingNode:
		for i := 0; i+1 < len(node.Content); i += 2 {
			parts = append(parts, fmt.Sprintf("%q:%s", node.Content[i].Value, asJSON(t, node.Content[i+1])))
		}

		return "{" + strings.Join(parts, ",") + "}"
	case yaml.SequenceNode:
		for _, item := range node.Content {
			parts = append(parts, asJSON(t, item))
		}

		return "[" + strings.Join(parts, ",") + "]"
	default:
		var v any
		require.NoError(t, node.Decode(&v))
		encoded, err := json.Marshal(v)
		require.NoError(t, err)

		return string(encoded)
	}
}
