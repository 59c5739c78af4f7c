// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

// Package explain says in plain words what is wrong with a Talos configuration, without quoting values from it.
package explain

import (
	"errors"
	"regexp"
	"slices"
	"strings"

	"github.com/hashicorp/go-multierror"
	"go.yaml.in/yaml/v3"
)

// unknownKeys is how the machinery's reader begins a list of fields it does not know; the fields
// follow as YAML, with their values.
const unknownKeys = "unknown keys found during decoding:"

// typeErrors is how a YAML reader begins a list of values of the wrong type; the machinery has two.
var typeErrors = regexp.MustCompile(`(?s)^.*(construct|unmarshal) errors:`)

// unregistered matches what the machinery says of a document of a kind that it does not have.
var unregistered = regexp.MustCompile(`"([A-Za-z0-9]+)" "([a-z0-9./]+)": not registered`)

var (
	backquoted = regexp.MustCompile("`[^`]*`")
	quoted     = regexp.MustCompile(`"(?:[^"\\]|\\.)*"`)
)

// Load tells why a text cannot be read, without quoting values from it.
func Load(err error) string {
	text := err.Error()
	if kind := unregistered.FindStringSubmatch(text); kind != nil {
		return "there is no document of the kind " + kind[1] + " in " + kind[2] + ": write one that Talos has, or remove it"
	}
	if _, fields, ok := strings.Cut(text, unknownKeys); ok {
		return "unknown fields " + strings.Join(fieldPaths(fields), ", ")
	}

	text = typeErrors.ReplaceAllString(text, "")

	return strings.Join(strings.Fields(HideValues(text)), " ")
}

// HideValues blots out what a message quotes, except paths into the configuration and the names
// of document kinds.
func HideValues(text string) string {
	text = backquoted.ReplaceAllString(text, "`…`")
	if strings.Contains(text, "not registered") {
		return text
	}

	return quoted.ReplaceAllStringFunc(text, func(q string) string {
		if strings.HasPrefix(q, `"/`) {
			return q
		}

		return `"…"`
	})
}

// fieldPaths returns the paths of the leaves in a YAML text, "machine.instal.disk".
func fieldPaths(text string) []string {
	var paths []string
	for _, leaf := range unknownLeaves(text) {
		paths = append(paths, strings.Join(leaf, "."))
	}
	if len(paths) == 0 {
		return []string{"(unreadable)"}
	}

	return paths
}

// UnknownFields returns the ways to the fields that the machinery's reader did not know; false when that is not what
// the error tells.
func UnknownFields(err error) ([][]string, bool) {
	_, listed, ok := strings.Cut(err.Error(), unknownKeys)
	if !ok {
		return nil, false
	}

	return unknownLeaves(listed), true
}

// unknownLeaves returns the way to each leaf of a YAML text.
func unknownLeaves(text string) [][]string {
	var node yaml.Node
	if err := yaml.Unmarshal([]byte(text), &node); err != nil || len(node.Content) == 0 {
		return nil
	}
	var paths [][]string
	var walk func(n *yaml.Node, path []string)
	walk = func(n *yaml.Node, path []string) {
		if n.Kind != yaml.MappingNode || len(n.Content) == 0 {
			paths = append(paths, path)

			return
		}
		for i := 0; i+1 < len(n.Content); i += 2 {
			walk(n.Content[i+1], append(slices.Clone(path), n.Content[i].Value))
		}
	}
	walk(node.Content[0], nil)

	return paths
}

// Messages returns every single error in a tree of errors.
func Messages(err error) []string {
	if err == nil {
		return nil
	}
	var list []error
	switch e := err.(type) { //nolint:errorlint // the tree itself is walked
	case *multierror.Error:
		list = e.Errors
	case interface{ Unwrap() []error }:
		list = e.Unwrap()
	default:
		inner := errors.Unwrap(err)
		if inner == nil {
			return []string{strings.TrimSpace(err.Error())}
		}
		prefix, wraps := strings.CutSuffix(err.Error(), inner.Error())
		messages := Messages(inner)
		if !wraps || len(messages) == 0 {
			return []string{strings.TrimSpace(err.Error())}
		}
		for i := range messages {
			messages[i] = prefix + messages[i]
		}

		return messages
	}
	var messages []string
	for _, e := range list {
		messages = append(messages, Messages(e)...)
	}

	return messages
}
