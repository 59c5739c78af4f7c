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

// yamlCoercion returns advice when YAML or Pulumi read something else than what is written in the file: an octal or
// hexadecimal number, one with underscores or an exponent, a date. It needs the file.
func (d *decoder) yamlCoercion(path string, node *yaml.Node, v reflect.Value) string {
	w, ok := d.written[path]
	if !ok || w.quoted || w.raw == "" {
		return ""
	}
	switch {
	case w.tag == "!!timestamp":
		return fmt.Sprintf("YAML reads the date %s as something else: put it in quotes, %q", w.raw, w.raw)
	case w.tag == "!!int" && !plainInteger(w.raw):
		return integerCoercion(w.raw, node.Value, v.Kind())
	case w.tag == "!!float" && node.Tag != "!!str" && number(w.raw) && plainInteger(strings.TrimLeft(w.raw, "0")):
		return fmt.Sprintf("YAML reads %s as the number %s: write it without leading zeros", w.raw, node.Value)
	}

	return ""
}

// integerCoercion returns advice about an integer that is not written as people write numbers.
func integerCoercion(written, read string, wanted reflect.Kind) string {
	switch {
	case strings.HasPrefix(written, "0") && number(written) && wanted == reflect.Int:
		return fmt.Sprintf("YAML reads %s as an octal number, which is %s: write %s or %s, whichever is meant",
			written, read, strings.TrimLeft(written, "0"), read)
	case wanted == reflect.String:
		return fmt.Sprintf("YAML reads %s as the number %s: put it in quotes, %q", written, read, written)
	default:
		return fmt.Sprintf("YAML reads %s as the number %s: write that", written, read)
	}
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
