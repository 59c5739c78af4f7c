// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package machineconfig

import (
	"errors"
	"fmt"

	"go.yaml.in/yaml/v3"

	"github.com/talos-proxmox/talos-proxmox/spec"
)

// objectOf reads a YAML object. Errors never quote the text, which may hold something secret.
func objectOf(text spec.Text) (map[string]any, error) {
	var node yaml.Node
	if err := yaml.Unmarshal([]byte(text), &node); err != nil {
		return nil, errors.New("is not YAML: " + withoutValues(err.Error()))
	}
	if len(node.Content) == 0 || node.Content[0].Kind != yaml.MappingNode {
		return nil, errors.New("is not a YAML object")
	}
	plainTimes(&node)
	object := map[string]any{}
	if err := node.Content[0].Decode(&object); err != nil {
		return nil, fmt.Errorf("is not a YAML object with text keys: %s", withoutValues(err.Error()))
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
