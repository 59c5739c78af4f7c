// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package stack

import (
	"encoding"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/talos-proxmox/talos-proxmox/internal/check"
	"github.com/talos-proxmox/talos-proxmox/internal/credential"
	"github.com/talos-proxmox/talos-proxmox/internal/rules"
	"github.com/talos-proxmox/talos-proxmox/spec"
)

// decoder reads YAML nodes into settings and records what does not fit.
type decoder struct {
	problems check.List
	// project is the name with which every key begins.
	project string
	// broken are paths whose value could not be read, so that rules about them are void.
	broken map[string]bool
	// written is what the stack file says, by path; nil when the file was not found.
	written map[string]sourcePos
	// secretKeys are the top-level keys that hold a secret somewhere.
	secretKeys map[string]bool
	// secureKeys are those in which a secret or a text was found that may be the secure value.
	secureKeys map[string]bool
	// secure are the values that were written secure.
	secure []string
}

var (
	secretType      = reflect.TypeFor[spec.Secret]()
	textType        = reflect.TypeFor[spec.Text]()
	unmarshalerType = reflect.TypeFor[encoding.TextUnmarshaler]()
)

func (d *decoder) fail(path, format string, args ...any) {
	d.problems.Addf(path, format, args...)
	d.broken[path] = true
}

// decode reads node into v, which can be set.
func (d *decoder) decode(path string, node *yaml.Node, v reflect.Value) {
	if v.Kind() == reflect.Pointer {
		fresh := reflect.New(v.Type().Elem())
		before := len(d.broken)
		d.decode(path, node, fresh.Elem())
		if len(d.broken) == before || fresh.Elem().Kind() == reflect.Struct {
			v.Set(fresh)
		}

		return
	}
	if node.Kind == yaml.AliasNode {
		node = node.Alias
	}
	if node.Kind == yaml.ScalarNode && node.Tag == "!!null" {
		d.fail(path, "is empty: write a value, {} for a block without settings, or remove the key")

		return
	}

	switch {
	case v.Type() == secretType:
		d.decodeSecret(path, node, v)
	case v.Type() == textType:
		d.decodeText(path, node, v)
	case d.written[path].secure:
		d.fail(path,
			"must not be secure: only secrets and free text may; this value becomes part of names, addresses "+
				"or other plain settings")
	case v.Kind() == reflect.Struct:
		d.decodeStruct(path, node, v)
	case v.Kind() == reflect.Map:
		d.decodeMap(path, node, v)
	case v.Kind() == reflect.Slice:
		d.decodeList(path, node, v)
	default:
		d.decodeScalar(path, node, v)
	}
}

func (d *decoder) decodeStruct(path string, node *yaml.Node, v reflect.Value) {
	if !d.isMapping(path, node) {
		return
	}
	fields := map[string]spec.Field{}
	for _, f := range spec.Fields(v.Type()) {
		fields[f.Name] = f
	}
	seen := map[string]bool{}
	for i := 0; i+1 < len(node.Content); i += 2 {
		key, value := node.Content[i].Value, node.Content[i+1]
		at := check.Key(path, key)
		f, known := fields[key]
		switch {
		case seen[key]:
			d.fail(at, "is written twice")
		case !known:
			d.unknown(path, key, value, fields)
		default:
			before := len(d.broken)
			field := v.FieldByIndex(f.Index)
			d.decode(at, value, field)
			if len(d.broken) == before {
				d.checkValue(at, f, field)
			}
		}
		seen[key] = true
	}
	for name, f := range fields {
		if f.Required && !seen[name] && !d.broken[check.Join(path, name)] {
			d.fail(check.Join(path, name), "is required")
		}
	}
}

func (d *decoder) checkValue(path string, f spec.Field, v reflect.Value) {
	if message := rules.CheckValue(f, v); message != "" {
		d.fail(path, "%s", message)
	}
}

func (d *decoder) decodeMap(path string, node *yaml.Node, v reflect.Value) {
	if !d.isMapping(path, node) {
		return
	}
	v.Set(reflect.MakeMap(v.Type()))
	for i := 0; i+1 < len(node.Content); i += 2 {
		key, value := node.Content[i].Value, node.Content[i+1]
		at := check.Key(path, key)
		if what := credential.In(key); what != "" {
			d.fail(at, "the name holds %s in plain text: %s", what, remedyFor(at))

			continue
		}
		if v.MapIndex(reflect.ValueOf(key)).IsValid() {
			d.fail(at, "is written twice")

			continue
		}
		element := reflect.New(v.Type().Elem()).Elem()
		d.decode(at, value, element)
		v.SetMapIndex(reflect.ValueOf(key), element)
	}
}

func (d *decoder) decodeList(path string, node *yaml.Node, v reflect.Value) {
	if node.Kind != yaml.SequenceNode {
		d.fail(path, "must be a list, not %s", kindOf(node))

		return
	}
	v.Set(reflect.MakeSlice(v.Type(), len(node.Content), len(node.Content)))
	for i, item := range node.Content {
		d.decode(check.Index(path, i), item, v.Index(i))
	}
}

func (d *decoder) isMapping(path string, node *yaml.Node) bool {
	if node.Kind == yaml.MappingNode {
		return true
	}
	d.fail(path, "must be a block of settings, not %s", kindOf(node))

	return false
}

// decodeScalar reads a text, a number, true or false, or what reads itself from text.
func (d *decoder) decodeScalar(path string, node *yaml.Node, v reflect.Value) {
	if node.Kind != yaml.ScalarNode {
		d.fail(path, "must be %s, not %s", wanted(v), kindOf(node))

		return
	}
	if d.refusePlain(path, node.Value) {
		return
	}
	if advice := d.yamlCoercion(path, node, v); advice != "" {
		d.fail(path, "%s", advice)

		return
	}
	if v.Addr().Type().Implements(unmarshalerType) {
		u, _ := v.Addr().Interface().(encoding.TextUnmarshaler)
		if err := u.UnmarshalText([]byte(node.Value)); err != nil {
			d.fail(path, "%s", err)
		}

		return
	}
	d.decodePlain(path, node, v)
}

func (d *decoder) decodePlain(path string, node *yaml.Node, v reflect.Value) {
	fits := map[reflect.Kind]string{reflect.String: "!!str", reflect.Bool: "!!bool", reflect.Int: "!!int"}
	if node.Tag != fits[v.Kind()] {
		d.fail(path, "must be %s, not %s%s", wanted(v), kindOf(node), d.advice(path, node, v))

		return
	}
	if err := node.Decode(v.Addr().Interface()); err != nil {
		d.fail(path, "must be %s: %q does not fit", wanted(v), node.Value)
	}
}

// advice says how to write the value that was probably meant.
func (d *decoder) advice(path string, node *yaml.Node, v reflect.Value) string {
	raw := node.Value
	if w, ok := d.written[path]; ok && w.raw != "" {
		raw = w.raw
	}
	switch {
	case v.Kind() == reflect.String:
		return fmt.Sprintf(": put it in quotes, %q", raw)
	case v.Kind() == reflect.Int && node.Tag == "!!str" && number(node.Value):
		return ": remove the quotes"
	case v.Kind() == reflect.Bool && slices.Contains([]string{"on", "yes", "y", "1", "true"}, strings.ToLower(node.Value)):
		return ": write true"
	case v.Kind() == reflect.Bool && slices.Contains([]string{"off", "no", "n", "0", "false"}, strings.ToLower(node.Value)):
		return ": write false"
	default:
		return ""
	}
}

func wanted(v reflect.Value) string {
	switch {
	case v.Type() == reflect.TypeFor[spec.MiB]():
		return "a size in MiB such as 8192 or 8GiB"
	case v.Type() == reflect.TypeFor[spec.GiB]():
		return "a size in GiB such as 128 or 1T"
	case v.Type() == reflect.TypeFor[spec.Duration]():
		return `a duration such as "90s" or "10m"`
	case v.Kind() == reflect.Bool:
		return "true or false"
	case v.Kind() == reflect.Int:
		return "a whole number"
	default:
		return "text"
	}
}

func kindOf(node *yaml.Node) string {
	switch {
	case node.Kind == yaml.MappingNode:
		return "a block of settings"
	case node.Kind == yaml.SequenceNode:
		return "a list"
	case node.Tag == "!!bool":
		return "true or false"
	case node.Tag == "!!int":
		return "a number"
	case node.Tag == "!!float":
		return "a number with a fraction"
	default:
		return "text"
	}
}
