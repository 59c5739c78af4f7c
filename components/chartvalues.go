// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package components

import (
	"errors"
	"maps"

	"sigs.k8s.io/yaml"

	"github.com/talos-proxmox/talos-proxmox/spec"
)

// chartValues lays the user's values over ours, key by key.
func chartValues(chart spec.Chart, ours map[string]any) (map[string]any, error) {
	if chart.Values == nil {
		return ours, nil
	}
	var theirs map[string]any
	if err := yaml.Unmarshal([]byte(*chart.Values), &theirs); err != nil {
		return nil, errors.New("chart.values: is not a YAML mapping")
	}

	return merged(ours, theirs), nil
}

// merged is a with b over it, key by key.
func merged(a, b map[string]any) map[string]any {
	out := maps.Clone(a)
	for key, value := range b {
		under, isMap := out[key].(map[string]any)
		over, areBoth := value.(map[string]any)
		if isMap && areBoth {
			value = merged(under, over)
		}
		out[key] = value
	}

	return out
}
