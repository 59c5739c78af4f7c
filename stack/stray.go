// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package stack

import (
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"github.com/talos-proxmox/talos-proxmox/internal/check"
	"github.com/talos-proxmox/talos-proxmox/spec"
)

// foreign are prefixes of keys that configure default providers, of which this program has none, and where
// their settings belong.
var foreign = map[string]string{
	"proxmoxve":  "the program registers its own Proxmox provider: write it under %s:proxmox",
	"talos":      "the program registers its own Talos provider: remove it, or write it under %s:talos",
	"kubernetes": "the program registers its own Kubernetes provider: remove it, or write it under %s:kubernetes",
}

// refuseForeign refuses keys with the prefix of another project that are meant for this one.
func (d *decoder) refuseForeign(project string, keys []string) {
	for _, key := range keys {
		prefix, name, ok := strings.Cut(key, ":")
		if !ok && isTopLevel(check.Elements(key)[0]) {
			d.problems.Addf(key, "is written without the project's name: write %s:%s", project, key)
		}
		if !ok || prefix == project {
			continue
		}
		first := name
		if elements := check.Elements(name); len(elements) > 0 {
			first = elements[0]
		}
		instead, provider := foreign[prefix]
		switch {
		case provider:
			d.problems.Addf(key, "configures a provider that nothing uses: "+instead, project)
		case isTopLevel(first), check.Nearest(prefix, []string{project}) != "":
			d.problems.Addf(key, "is a key of the project %q, and this project is %q: write %s:%s", prefix, project, project, name)
		}
	}
}

// refuseStray refuses keys that stand beside config in the stack file, where Pulumi reads none of them.
func (d *decoder) refuseStray(project string, f *stackFile) {
	for _, key := range slices.Sorted(maps.Keys(f.stray)) {
		name, ours := strings.CutPrefix(key, project+":")
		if ours || isTopLevel(name) {
			d.problems.Addf(key, "is beside config, where Pulumi does not read it: indent it below config, as %s:%s", project, name)

			continue
		}
		hint := "move it below config, or remove it"
		if best := check.Nearest(key, append([]string{"config"}, besideConfig...)); best != "" {
			hint = "did you mean \"" + best + "\"?"
		}
		d.problems.Addf(key, "is not a key of a stack file, and Pulumi does not read it: %s", hint)
	}
}

// isTopLevel reports whether a stack file has the key.
func isTopLevel(name string) bool {
	return slices.ContainsFunc(spec.Fields(reflect.TypeFor[File]()), func(f spec.Field) bool { return f.Name == name })
}

// quoted is a value as messages quote it.
var quoted = regexp.MustCompile(`"(?:[^"\\]|\\.)*"`)

// hideSecure takes secure values out of the problems, wherever they got into a message. Where it is not known which values
// are secure, quotations of a key that holds one are taken out.
func (d *decoder) hideSecure(p spec.Problem) spec.Problem {
	const hidden = "…"
	for _, value := range d.secure {
		if len(value) >= 3 {
			whole := regexp.MustCompile(`(^|\W)` + regexp.QuoteMeta(value) + `(\W|$)`)
			p.Message = whole.ReplaceAllString(p.Message, "${1}"+hidden+"${2}")
		}
	}
	if d.written == nil && d.secretKeys[check.Head(p.Path, 1)] {
		p.Message = quoted.ReplaceAllString(p.Message, `"`+hidden+`"`)
	}

	return p
}
