// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package policy

import (
	"fmt"
	"slices"

	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"

	"github.com/talos-proxmox/talos-proxmox/internal/check"
	"github.com/talos-proxmox/talos-proxmox/internal/credential"
)

// checkPlain looks for credentials among the inputs that are not secret. It never repeats one.
func (p *Pack) checkPlain(r Resource) []string {
	var found []string
	walkPlain("", resource.NewProperty(r.Inputs), func(path, text string) {
		if what := credential.In(text); what != "" {
			found = append(found, fmt.Sprintf("%s: input %s holds %s in plain text: give it as a secret", quoted(r), path, what))
		}
	})
	slices.Sort(found)

	return found
}

// walkPlain visits every text that is not secret.
func walkPlain(path string, v resource.PropertyValue, visit func(path, text string)) {
	switch {
	case v.IsOutput() && v.OutputValue().Known && !v.OutputValue().Secret:
		walkPlain(path, v.OutputValue().Element, visit)
	case v.IsString():
		visit(path, v.StringValue())
	case v.IsArray():
		for i, element := range v.ArrayValue() {
			walkPlain(check.Index(path, i), element, visit)
		}
	case v.IsObject():
		for key, element := range v.ObjectValue() {
			walkPlain(check.Key(path, string(key)), element, visit)
		}
	}
}
