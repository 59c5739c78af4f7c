// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package stack

import (
	"fmt"
	"reflect"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// yamlCoercion returns advice when YAML or Pulumi read something else than what stands in the file: an octal or
// hexadecimal number, one with underscores or an exponent, a date. It needs the file.
func (d *decoder) yamlCoercion(path string, node *yaml.Node, v reflect.Value) string {
	w, ok := d.written[path]
	if !ok || w.quoted || w.raw == "" {
		return ""
	}
	switch {
	case w.tag == "!!timestamp":
		return fmt.Sprintf("YAML reads the date %s as something else: put it in quotes, %q", w.raw, w.raw)
	case w.tag == "!!int" && !plainInteger(w.raw) && strings.HasPrefix(w.raw, "0") && number(w.raw) && v.Kind() == reflect.Int:
		return fmt.Sprintf("YAML reads %s as an octal number, which is %s: write %s or %s, whichever is meant",
			w.raw, node.Value, strings.TrimLeft(w.raw, "0"), node.Value)
	case w.tag == "!!int" && !plainInteger(w.raw) && v.Kind() == reflect.String:
		return fmt.Sprintf("YAML reads %s as the number %s: put it in quotes, %q", w.raw, node.Value, w.raw)
	case w.tag == "!!int" && !plainInteger(w.raw):
		return fmt.Sprintf(
			"YAML reads %s as the number %s: write that", w.raw, node.Value)
	case w.tag == "!!float" && node.Tag != "!!str" && number(w.raw) && plainInteger(strings.TrimLeft(w.raw, "0")):
		return fmt.Sprintf("YAML reads %s as the number %s: write it without leading zeros", w.raw, node.Value)
	}

	return ""
}

// plainInteger reports whether text is a number as one writes it by hand.
func plainInteger(text string) bool {
	n, err := strconv.ParseInt(text, 10, 64)

	return err == nil && strconv.FormatInt(n, 10) == text
}

// number reports whether text is digits.
func number(text string) bool {
	return text != "" && strings.Trim(text, "0123456789") == ""
}
