// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package schema

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/talos-proxmox/talos-proxmox/lab/site/pve"
)

const unknownProperty = "property is not defined in schema and the schema does not allow additional properties"

// problems collects what is wrong by the path of the value.
type problems map[string]string

func (p problems) add(path, format string, args ...any) {
	if path == "" {
		path = "_root"
	}
	text := fmt.Sprintf(format, args...)
	if have, ok := p[path]; ok {
		text = have + `\n` + text // Proxmox VE writes the two characters
	}
	p[path] = text
}

// Parameters refuses parameters of a call, those of its path among them, that Proxmox VE refuses. A value is a string,
// or several as []any.
func (d *Description) Parameters(call string, values map[string]any) error {
	m, ok := d.calls[placeholder.ReplaceAllString(call, "{}")]
	if !ok {
		return fmt.Errorf("the API description has no call %q", call)
	}
	normalize(d, m.Parameters, values)
	found := problems{}
	if len(m.Parameters.AllOf) > 0 {
		d.checkAllOf(values, m.Parameters.AllOf, found)
	} else {
		d.check(values, m.Parameters, "", "", found)
	}

	return found.refusal()
}

func (p problems) refusal() error {
	if len(p) == 0 {
		return nil
	}

	return &pve.Error{Status: http.StatusBadRequest, Message: "Parameter verification failed.", Fields: p}
}

// normalize joins several values of a list, and makes one of an array its only element.
func normalize(d *Description, schema property, values map[string]any) {
	for name, value := range values {
		p, ok := d.field(schema.Properties, name)
		if !ok {
			continue
		}
		switch v := value.(type) {
		case []any:
			if p.Type.has("string") && p.Format != nil && strings.HasSuffix(p.Format.name, "-list") {
				var parts []string
				for _, one := range v {
					parts = append(parts, fmt.Sprint(one))
				}
				values[name] = strings.Join(parts, ",")
			}
		case string:
			if p.Type.has("array") && v != "" {
				values[name] = []any{v}
			}
		}
	}
}

// Returns tells what in an answer is not as the description of the call says it, by path.
func (d *Description) Returns(call string, answer any) map[string]string {
	found := problems{}
	if m, ok := d.calls[placeholder.ReplaceAllString(call, "{}")]; ok {
		d.check(answer, m.Returns, "", "", found)
	}

	return found
}

// check checks a value; nil is one that is missing.
func (d *Description) check(value any, p property, path, instance string, found problems) {
	optional := bool(p.Optional)
	switch {
	case p.Alias != "":
		return
	case len(p.OneOf) > 0 && p.TypeProperty != "":
		optional = d.checkVariant(value, p, path, instance, found)
	case len(p.OneOf) > 0:
		d.checkOneOf(value, p, path, found)
	case instance != "" && len(p.InstanceTypes) > 0 && !slices.Contains(p.InstanceTypes, instance):
		optional = true
	}
	if value == nil {
		if !p.Type.has("null") && !optional && p.Group == "" {
			found.add(path, "property is missing and it is not optional")
		}

		return
	}
	if checkType(value, p.Type, path, found) {
		d.checkContent(value, p, path, found)
	}
}

// checkContent checks what a value of the right type holds.
func (d *Description) checkContent(value any, p property, path string, found problems) {
	switch v := value.(type) {
	case []any:
		for i, element := range v {
			if p.Items != nil {
				d.check(element, *p.Items, fmt.Sprintf("%s[%d]", path, i), "", found)
			}
		}
	case map[string]any:
		if p.Properties != nil || len(p.AdditionalProperties) > 0 {
			d.checkObject(v, p.Properties, p.AdditionalProperties, path, found)
		}
	default:
		d.checkScalar(text(value), p, path, found)
	}
}

// checkVariant checks a value by the variant of the object that it is in, and reports whether it may be missing.
func (d *Description) checkVariant(value any, p property, path, instance string, found problems) bool {
	optional := true
	for _, variant := range p.OneOf {
		if instance != "" && slices.Contains(variant.InstanceTypes, instance) {
			optional = bool(variant.Optional)
			d.check(value, variant, path, "", found)
		}
	}

	return optional
}

func (d *Description) checkOneOf(value any, p property, path string, found problems) {
	all := problems{}
	for i, variant := range p.OneOf {
		inner := problems{}
		d.check(value, variant, fmt.Sprintf("%s.oneOf[%d]", path, i), "", inner)
		if len(inner) == 0 {
			return
		}
		maps.Copy(all, inner)
	}
	for where, text := range all {
		found.add(where, "%s", text)
	}
}

func (d *Description) checkObject(values map[string]any, fields map[string]property, more json.RawMessage, path string, found problems) {
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		if strings.HasSuffix(name, "[n]") {
			continue // those that are there are looked at below
		}
		d.check(values[name], fields[name], join(path, name), instanceOf(fields[name], values), found)
	}
	for _, name := range slices.Sorted(maps.Keys(values)) {
		where := join(path, name)
		p, known := d.field(fields, name)
		if !known {
			if string(more) == "0" || string(more) == `"0"` || string(more) == "false" {
				found.add(where, unknownProperty)
			}

			continue
		}
		if _, plain := fields[name]; !plain {
			d.check(values[name], p, where, "", found)
		}
		d.checkRequires(p, values, path, where, found)
		if p.TypeProperty != "" && !applies(p, instanceOf(p, values)) {
			found.add(where, unknownProperty)
		}
	}
}

func (d *Description) checkRequires(p property, values map[string]any, path, where string, found problems) {
	if len(p.Requires) == 0 {
		return
	}
	var name string
	if json.Unmarshal(p.Requires, &name) == nil {
		switch {
		case values[name] != nil:
		case d.major > 8: // the version before
			found.add(join(path, name), "missing property required by '%s'", where)
		default:
			found.add(join(path, name), "missing property - '%s' requires this property", where)
		}

		return
	}
	var object property
	if json.Unmarshal(p.Requires, &object) == nil {
		d.check(values, object, path, "", found)
	}
}

// instanceOf returns the type of the object that a field depends on, "" when it depends on none.
func instanceOf(p property, values map[string]any) string {
	if p.TypeProperty == "" {
		return ""
	}
	s, _ := values[p.TypeProperty].(string)

	return s
}

func applies(p property, instance string) bool {
	return slices.ContainsFunc(p.OneOf, func(v property) bool {
		return len(v.InstanceTypes) == 0 || slices.Contains(v.InstanceTypes, instance)
	})
}

func join(path, name string) string {
	if path == "" {
		return name
	}

	return path + "." + name
}

// text prints a scalar of an answer or of a request as Perl does.
func text(value any) string {
	switch v := value.(type) {
	case bool:
		if v {
			return "1"
		}

		return "0"
	case float64:
		return strconv.FormatFloat(v, 'f', -1, 64)
	default:
		return fmt.Sprint(v)
	}
}

var (
	numberText  = regexp.MustCompile(`^[+-]?(\d+\.\d+|\d+\.|\.\d+|\d+)([eE][+-]?\d+)?\n?$`)
	integerText = regexp.MustCompile(`^[+-]?\d+\n?$`)
)

func checkType(value any, want types, path string, found problems) bool {
	if len(want) == 0 {
		return true
	}
	wrong := problems{}
	for _, kind := range want {
		one := problems{}
		if checkOneType(value, kind, path, one) {
			return true
		}
		wrong = one
	}
	if len(want) > 1 {
		found.add(path, "type check ('%s') failed", strings.Join(want, "|"))

		return false
	}
	for where, text := range wrong {
		found.add(where, "%s", text)
	}

	return false
}

func checkOneType(value any, kind, path string, found problems) bool {
	_, isArray := value.([]any)
	_, isObject := value.(map[string]any)
	fits, got := true, ""
	switch kind {
	case "any":
	case "null":
		fits, got = false, " - value is not null"
	case "array":
		fits = isArray
	case "object":
		fits = isObject
	case "string", "boolean", "integer", "number":
		s := text(value)
		switch {
		case isArray:
			fits, got = false, " - got ARRAY"
		case isObject:
			fits, got = false, " - got HASH"
		default:
			fits = kind == "string" || kind == "boolean" && (s == "0" || s == "1") ||
				kind == "integer" && integerText.MatchString(s) || kind == "number" && numberText.MatchString(s)
			got = " - got '" + s + "'"
		}
	}
	if !fits {
		found.add(path, "type check ('%s') failed%s", kind, got)
	}

	return fits
}

func (d *Description) checkScalar(s string, p property, path string, found problems) {
	if p.Format != nil {
		if err := d.checkFormat(*p.Format, s, path); err != nil {
			found.add(path, "invalid format - %s", strings.TrimRight(err.Error(), "\n"))

			return
		}
	}
	if p.Pattern != "" && !perl(p.Pattern).MatchString(s) {
		found.add(path, "value does not match the regex pattern")

		return
	}
	if n, ok := number(p.MaxLength); ok && float64(len([]rune(s))) > n {
		found.add(path, "value may only be %s characters long", *p.MaxLength)

		return
	}
	if n, ok := number(p.MinLength); ok && float64(len([]rune(s))) < n {
		found.add(path, "value must be at least %s characters long", *p.MinLength)

		return
	}
	if value, err := strconv.ParseFloat(s, 64); err == nil && numberText.MatchString(s) {
		if n, ok := number(p.Maximum); ok && value > n {
			found.add(path, "value must have a maximum value of %s", *p.Maximum)

			return
		}
		if n, ok := number(p.Minimum); ok && value < n {
			found.add(path, "value must have a minimum value of %s", *p.Minimum)

			return
		}
	}
	if len(p.Enum) > 0 && !slices.Contains(p.Enum, scalar(s)) {
		var names []string
		for _, one := range p.Enum {
			names = append(names, string(one))
		}
		found.add(path, "value '%s' does not have a value in the enumeration '%s'", s, strings.Join(names, ", "))
	}
}

func number(s *scalar) (float64, bool) {
	if s == nil {
		return 0, false
	}
	n, err := strconv.ParseFloat(string(*s), 64)

	return n, err == nil
}
