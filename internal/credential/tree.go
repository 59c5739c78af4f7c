// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package credential

import (
	"bytes"
	"regexp"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/talos-proxmox/talos-proxmox/internal/yamltree"
)

// Step names one step into a tree: a key, or the number of a list's element.
type Step struct {
	Key   string
	Index int
}

// byKey is the Index of a step by key.
const byKey = -1

// IsKey reports whether the step is a key.
func (s Step) IsKey() bool { return s.Index == byKey }

// InText returns what kind of credential is written plainly in a text, as it stands or as YAML or JSON documents, and the line; ""
// where there is none.
func InText(text string) (what string, line int) {
	for i, part := range strings.Split(text, "\n") {
		if what := inLine(part); what != "" {
			return what, i + 1
		}
	}
	if what := In(text); what != "" {
		return what, 1
	}
	for decoder := yaml.NewDecoder(bytes.NewReader([]byte(text))); ; {
		var document yaml.Node
		if err := decoder.Decode(&document); err != nil {
			return "", 0 // the end, or no YAML, which the rules report where it has to be
		}
		if what, _, at := InTree(yamltree.Resolve(&document), func([]Step) bool { return false }); what != "" {
			return what, at.Line
		}
	}
}

var (
	// quotedValue is a name with a quoted value, as in TOML, INI files and programs.
	quotedValue = regexp.MustCompile(`^\s*(?:export\s+)?([A-Za-z_][A-Za-z0-9_.-]*)\s*[=:]\s*["']([^"']+)["']`)
	// netrc is a password as .netrc files have it.
	netrc = regexp.MustCompile(`\b(?:machine|login|default)\b.*\bpassword\s+(\S+)`)
)

// inLine returns what is written plainly in a line, in a form that is no YAML.
func inLine(line string) string {
	if m := quotedValue.FindStringSubmatch(line); m != nil && Sensitive(m[1]) && !Refers(m[2]) {
		return "the value of " + m[1]
	}
	if m := netrc.FindStringSubmatch(line); m != nil && !Refers(m[1]) {
		return "a password"
	}

	return ""
}

// InTree returns what kind of credential is written plainly in a tree, and where; secure reports which values are written as secrets.
func InTree(node *yaml.Node, secure func(at []Step) bool) (what string, at []Step, found *yaml.Node) {
	w := walker{secure: secure}
	w.walk(node, nil)

	return w.what, w.at, w.found
}

type walker struct {
	secure func(at []Step) bool
	what   string
	at     []Step
	found  *yaml.Node
}

func (w *walker) record(what string, at []Step, node *yaml.Node) {
	if what != "" && w.what == "" && !w.secure(at) {
		w.what, w.at, w.found = what, append([]Step(nil), at...), node
	}
}

func (w *walker) walk(node *yaml.Node, at []Step) {
	if w.what != "" {
		return
	}
	switch node.Kind {
	case yaml.DocumentNode:
		for _, item := range node.Content {
			w.walk(item, at)
		}
	case yaml.SequenceNode:
		for i, item := range node.Content {
			w.walk(item, append(at, Step{Index: i}))
		}
	case yaml.MappingNode:
		w.mapping(node, at)
	case yaml.ScalarNode:
		w.record(In(node.Value), at, node)
	}
}

func (w *walker) mapping(node *yaml.Node, at []Step) {
	kind := yamltree.Child(node, "kind")
	isSecret := kind != nil && kind.Value == "Secret"
	w.named(node, at)
	for i := 0; i+1 < len(node.Content); i += 2 {
		key, value := node.Content[i].Value, node.Content[i+1]
		below := append(at, Step{Key: key, Index: byKey})
		switch {
		case isSecret && (key == "data" || key == "stringData"):
			for j := 0; j+1 < len(value.Content); j += 2 {
				if v := value.Content[j+1]; v.Kind == yaml.ScalarNode && v.Value != "" {
					w.record("a Kubernetes Secret", append(below, Step{Key: value.Content[j].Value, Index: byKey}), v)
				}
			}

			continue
		case value.Kind == yaml.ScalarNode && value.ShortTag() == "!!str" && isCredential(key, value.Value, at):
			w.record("the value of "+key, below, value)
		}
		w.walk(value, below)
	}
}

// isCredential reports whether a value is a credential by its key, or by the keys around it.
func isCredential(key, value string, at []Step) bool {
	if Refers(value) {
		return false
	}
	if Sensitive(key) {
		return true
	}
	around := ""
	if len(at) > 0 {
		around = at[len(at)-1].Key
	}
	// A chart's own certificate authority, and what container runtimes write of a registry.
	return (key == "key" && (around == "ca" || around == "tls")) || key == "auth" && base64Form.MatchString(value)
}

var base64Form = regexp.MustCompile(`^[A-Za-z0-9+/]{8,}={0,2}$`)

// named finds a value that stands beside its name: a variable of a container, an operation of a JSON patch.
func (w *walker) named(node *yaml.Node, at []Step) {
	value := yamltree.Child(node, "value")
	if value == nil || value.Kind != yaml.ScalarNode || value.ShortTag() != "!!str" || Refers(value.Value) {
		return
	}
	for _, by := range []string{"name", "path"} {
		name := yamltree.Child(node, by)
		if name == nil || name.Kind != yaml.ScalarNode || by == "path" && yamltree.Child(node, "op") == nil {
			continue
		}
		if last := name.Value[strings.LastIndexByte(name.Value, '/')+1:]; Sensitive(last) {
			w.record("the value of "+last, append(at, Step{Key: "value", Index: byKey}), value)
		}
	}
}
