// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package docgen

import (
	"bytes"
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/talos-proxmox/talos-proxmox/spec"
	"github.com/talos-proxmox/talos-proxmox/stack"
)

// object holds a JSON object; encoding/json writes its keys in order.
type object = map[string]any

// schema returns the JSON Schema of a stack file.
func (g *generator) schema() ([]byte, error) {
	g.definitions = object{}
	keys := object{}
	for _, f := range spec.Fields(reflect.TypeFor[stack.File]()) {
		keys[stack.Project+":"+f.Name] = g.describe(f)
	}
	root := object{
		"$schema": "http://json-schema.org/draft-07/schema#",
		"$id":     "https://raw.githubusercontent.com/talos-proxmox/talos-proxmox/main/" + SchemaPath,
		"title":   "Stack file of talos-proxmox",
		"type":    "object",
		"properties": object{
			"config": object{
				"type":       "object",
				"properties": keys,
				"propertyNames": object{"anyOf": []any{
					object{"enum": slices.Sorted(maps.Keys(keys))}, object{"not": object{"pattern": "^" + stack.Project + ":"}},
				}},
			},
			"encryptionsalt":  object{"type": "string"},
			"encryptedkey":    object{"type": "string"},
			"secretsprovider": object{"type": "string"},
			"environment":     object{},
		},
		"definitions": g.definitions,
	}
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	err := encoder.Encode(root)

	return out.Bytes(), err
}

// describe returns the schema of one field, with its comment and default.
func (g *generator) describe(f spec.Field) object {
	comment := g.comments.field(f.Owner, f.Struct.Name)
	s := object{"description": comment}
	if shown := examples(f, comment); len(shown) > 0 {
		s["examples"] = shown
	}
	shape := g.shape(f.Type)
	if _, ref := shape["$ref"]; ref {
		s["allOf"] = []any{shape}
	} else {
		for k, v := range shape {
			s[k] = v
		}
	}
	tag := f.Struct.Tag
	if enum := tag.Get("enum"); enum != "" {
		s["enum"] = typed(f.Type, strings.Split(enum, ",")...)
	}
	if f.Type.Kind() == reflect.Int && s["type"] == "integer" {
		for key, name := range map[string]string{"minimum": "min", "maximum": "max"} {
			if n, err := strconv.Atoi(tag.Get(name)); err == nil {
				s[key] = n
			}
		}
	}
	if d := tag.Get("default"); d != "" {
		s["default"] = typed(f.Type, d)[0]
		if f.Type.Kind() == reflect.Slice {
			s["default"] = typed(f.Type.Elem(), strings.Split(d, ",")...)
		}
	}

	return s
}

// typed returns values of tags as JSON has them.
func typed(t reflect.Type, texts ...string) []any {
	values := make([]any, 0, len(texts))
	for _, text := range texts {
		switch n, err := strconv.Atoi(text); {
		case t.Kind() == reflect.Bool:
			values = append(values, text == "true")
		case t.Kind() == reflect.Int && err == nil:
			values = append(values, n)
		default:
			values = append(values, text)
		}
	}

	return values
}

// shape returns the schema of a type.
func (g *generator) shape(t reflect.Type) object {
	switch {
	case t == reflect.TypeFor[spec.Secret]():
		return object{"$ref": "#/definitions/secret"}
	case t == reflect.TypeFor[spec.Text]():
		return object{"type": []any{"string", "object", "array"}}
	case t == reflect.TypeFor[spec.MiB](), t == reflect.TypeFor[spec.GiB]():
		return object{"type": []any{"integer", "string"}, "pattern": "^[0-9]+(K|KiB|M|MiB|G|GiB|T|TiB)?$", "minimum": 0}
	case t == reflect.TypeFor[spec.Duration]():
		return object{"type": "string", "pattern": `^([0-9]+(\.[0-9]+)?(ns|us|µs|ms|s|m|h))+$`}
	}

	switch t.Kind() {
	case reflect.Bool:
		return object{"type": "boolean"}
	case reflect.Int:
		return object{"type": "integer"}
	case reflect.Slice:
		return object{"type": "array", "items": g.shape(t.Elem())}
	case reflect.Map:
		return object{"type": "object", "additionalProperties": g.shape(t.Elem())}
	case reflect.Struct:
		g.define(t)

		return object{"$ref": "#/definitions/" + t.Name()}
	default:
		return object{"type": "string"}
	}
}

// define adds the definition of a struct type.
func (g *generator) define(t reflect.Type) {
	if _, done := g.definitions[t.Name()]; done {
		return
	}
	g.definitions[t.Name()] = object{} // a type may hold itself
	properties, required := object{}, []string{}
	for _, f := range spec.Fields(t) {
		properties[f.Name] = g.describe(f)
		if f.Required {
			required = append(required, f.Name)
		}
	}
	definition := object{
		"description": g.comments.types[t.Name()], "type": "object", "properties": properties, "additionalProperties": false,
	}
	if len(required) > 0 {
		definition["required"] = required
	}
	for word, condition := range conditions[t.Name()] {
		definition[word] = condition
	}
	g.definitions[t.Name()] = definition
	g.definitions["secret"] = object{
		"description": "A secret: `pulumi config set --secret --path …` writes it.",
		"type":        "object", "properties": object{"secure": object{"type": "string"}},
		"required": []string{"secure"}, "additionalProperties": false,
	}
}
