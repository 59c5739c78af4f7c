// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package addons

import (
	"strconv"

	"go.yaml.in/yaml/v3"

	"github.com/talos-proxmox/talos-proxmox/internal/check"
	"github.com/talos-proxmox/talos-proxmox/internal/rules/scope"
	"github.com/talos-proxmox/talos-proxmox/spec"
)

// releaseValues refuses what the Kubernetes provider (4.23.0) leaves out of a release's values without a
// word: what is null, and lists without members. The chart's own value would stay.
func (r *rules) releaseValues(path string, values *spec.Text) {
	var parsed map[string]any
	if values == nil || yaml.Unmarshal([]byte(*values), &parsed) != nil {
		return // said elsewhere
	}
	for _, key := range scope.SortedKeys(parsed) {
		r.releaseValue(check.Key(path, key), parsed[key])
	}
}

func (r *rules) releaseValue(path string, value any) {
	const why = ", which the provider leaves out of a release, so that the chart's own value would stay: " +
		"write what you want instead, or remove the key"

	switch v := value.(type) {
	case nil:
		r.Addf(path, "is null%s", why)
	case []any:
		if len(v) == 0 {
			r.Addf(path, "is a list without members%s", why)
		}
		for i, e := range v {
			r.releaseValue(path+"["+strconv.Itoa(i)+"]", e)
		}
	case map[string]any:
		for _, key := range scope.SortedKeys(v) {
			r.releaseValue(check.Key(path, key), v[key])
		}
	}
}
