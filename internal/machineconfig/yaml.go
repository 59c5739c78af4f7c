// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package machineconfig

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/talos-proxmox/talos-proxmox/internal/machineconfig/explain"
	"github.com/talos-proxmox/talos-proxmox/spec"
)

// objectOf reads a YAML object. Errors never quote the text, which may hold something secret.
func objectOf(text spec.Text) (map[string]any, error) {
	var node yaml.Node
	if err := yaml.Unmarshal([]byte(text), &node); err != nil {
		return nil, errors.New("is not YAML: " + explain.HideValues(err.Error()))
	}
	if len(node.Content) == 0 || node.Content[0].Kind != yaml.MappingNode {
		return nil, errors.New("is not a YAML object")
	}
	plainTimes(&node)
	object := map[string]any{}
	if err := node.Content[0].Decode(&object); err != nil {
		return nil, fmt.Errorf("is not a YAML object with text keys: %s", explain.HideValues(err.Error()))
	}

	return object, nil
}

// plainTimes takes what looks like a time as the text it is: Talos's configuration has no times.
func plainTimes(node *yaml.Node) {
	if node.Tag == "!!timestamp" {
		node.Tag = "!!str"
	}
	for _, child := range node.Content {
		plainTimes(child)
	}
}

// indentation is the number of spaces that Talos's encoder uses.
const indentation = 4

// settleQuotes writes the quotes of a configuration by one rule, whatever release of the machinery
// encoded it: releases differ in whether 'off' or "off" stands there, and a configuration whose text
// differs is applied anew.
func settleQuotes(text string) (string, error) {
	var out strings.Builder
	encoder := yaml.NewEncoder(&out)
	encoder.SetIndent(indentation)
	decoder := yaml.NewDecoder(strings.NewReader(text))
	for {
		var document yaml.Node
		err := decoder.Decode(&document)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return "", fmt.Errorf("reading the encoded configuration: %w", err)
		}
		if err := settleNode(&document); err != nil {
			return "", err
		}
		if err := encoder.Encode(&document); err != nil {
			return "", fmt.Errorf("encoding the configuration: %w", err)
		}
	}
	if err := encoder.Close(); err != nil {
		return "", fmt.Errorf("encoding the configuration: %w", err)
	}

	return out.String(), nil
}

// settleNode gives each quoted text below a node the quotes that this module's YAML library gives it.
func settleNode(node *yaml.Node) error {
	if node.Kind == yaml.ScalarNode && node.Style&(yaml.SingleQuotedStyle|yaml.DoubleQuotedStyle) != 0 {
		var fresh yaml.Node
		if err := fresh.Encode(node.Value); err != nil {
			return fmt.Errorf("encoding a text of the configuration: %w", err)
		}
		node.Style = fresh.Style
	}
	for _, child := range node.Content {
		if err := settleNode(child); err != nil {
			return err
		}
	}

	return nil
}
