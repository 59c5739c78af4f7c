// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package stack

import (
	"reflect"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/talos-proxmox/talos-proxmox/internal/check"
	"github.com/talos-proxmox/talos-proxmox/spec"
)

// decodeSecret takes a value that must have been written secure. It never prints it.
func (d *decoder) decodeSecret(path string, node *yaml.Node, v reflect.Value) {
	switch {
	case !d.isSecure(path):
		d.fail(path, "must be a secret: run `pulumi config set --secret --path '%s:%s'`", d.project, path)
	case node.Kind != yaml.ScalarNode:
		d.fail(path, "must be text, not %s", kindOf(node))
	case strings.TrimSpace(node.Value) == "":
		d.fail(path, "is an empty secret")
	default:
		d.noteSecure(path, node.Value)
		v.Set(reflect.ValueOf(spec.NewSecret(node.Value)))
	}
}

// refuseLostSecrets refuses keys in which Pulumi says that a value is secure, while neither the stack
// file, which would say which one, is at hand nor the key has a secret or free text that it can be:
// as plain settings such values would end up in the state in plain text.
func (d *decoder) refuseLostSecrets(values map[string]*yaml.Node) {
	if d.written != nil {
		return
	}
	for key := range d.secretKeys {
		if _, ours := values[key]; ours && !d.secureKeys[key] {
			d.fail(key, "holds a secure value where only plain settings stand: only secrets and free text may be secure")
		}
	}
}

// noteSecure remembers a secure value, and the top-level key that accounts for it.
func (d *decoder) noteSecure(path, value string) {
	d.secure = append(d.secure, value)
	d.secureKeys[check.Head(path, 1)] = true
}

// isSecure reports whether the value was written secure: exactly where the file is known, else as far
// as Pulumi tells, which flags whole top-level keys.
func (d *decoder) isSecure(path string) bool {
	if d.written != nil {
		return d.written[path].secure
	}

	return d.secretKeys[check.Head(path, 1)]
}

// decodeText takes text as it stands, or YAML as the text of that YAML.
func (d *decoder) decodeText(path string, node *yaml.Node, v reflect.Value) {
	d.gatherSecure(path, node)
	if node.Kind == yaml.ScalarNode {
		if node.Tag != "!!str" {
			d.fail(path, "must be text, not %s: put it in quotes", kindOf(node))

			return
		}
		if !d.isSecure(path) && d.refusePlainText(path, node.Value) {
			return
		}
		v.SetString(node.Value)

		return
	}

	if !d.unique(path, node) || d.refusePlainNode(path, node) {
		return
	}
	var tree any
	if err := node.Decode(&tree); err != nil {
		d.fail(path, "is no YAML that can be written as text")

		return
	}
	text, err := yaml.Marshal(tree)
	if err != nil {
		d.fail(path, "is no YAML that can be written as text")

		return
	}
	v.SetString(string(text))
}

// gatherSecure collects the secure values of a text.
func (d *decoder) gatherSecure(path string, node *yaml.Node) {
	switch node.Kind {
	case yaml.MappingNode:
		for i := 0; i+1 < len(node.Content); i += 2 {
			d.gatherSecure(check.Key(path, node.Content[i].Value), node.Content[i+1])
		}
	case yaml.SequenceNode:
		for i, item := range node.Content {
			d.gatherSecure(check.Index(path, i), item)
		}
	case yaml.ScalarNode:
		if node.Tag == "!!str" && node.Value != "" && d.isSecure(path) {
			d.noteSecure(path, node.Value)
		}
	}
}

// unique records keys that free YAML has twice.
func (d *decoder) unique(path string, node *yaml.Node) bool {
	ok := true
	seen := map[string]bool{}
	for i, item := range node.Content {
		switch {
		case node.Kind == yaml.SequenceNode:
			ok = d.unique(check.Index(path, i), item) && ok
		case i%2 == 0 && seen[item.Value]:
			d.fail(check.Key(path, item.Value), "is written twice")
			ok = false
		case i%2 == 0:
			seen[item.Value] = true
		default:
			ok = d.unique(check.Key(path, node.Content[i-1].Value), item) && ok
		}
	}

	return ok
}
