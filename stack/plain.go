// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package stack

import (
	"regexp"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/talos-proxmox/talos-proxmox/internal/check"
	"github.com/talos-proxmox/talos-proxmox/internal/credential"
)

// refusePlain records a credential that is written where no secret can be, and reports whether it did.
func (d *decoder) refusePlain(path, value string) bool {
	what := credential.In(value)
	if m := said.FindStringSubmatch(value); what == "" && m != nil && !credential.Refers(m[2]) {
		what = "a " + strings.ToLower(m[1])
	}
	if what == "" && credential.Sensitive(lastOf(path)) && !credential.Refers(value) && inFreeMap(path) {
		what = "the value of " + lastOf(path)
	}
	if what == "" {
		return false
	}
	d.fail(path, "holds %s in plain text: %s", what, remedyFor(path))

	return true
}

// said is a credential as people write it down, "password: hunter2".
var said = regexp.MustCompile(`(?i)\b(password|passwd|passphrase|pwd|token|api[ _-]?key)\s*:\s*(\S{4,})`)

// freeMaps are blocks whose keys are the user's, or another program's.
var freeMaps = []string{"extraArgs", "labels", "annotations", "meta", "options", "env", "sysctls"}

func inFreeMap(path string) bool {
	elements := check.Elements(path)
	for _, name := range freeMaps {
		if len(elements) > 1 && elements[len(elements)-2] == name {
			return true
		}
	}

	return false
}

func lastOf(path string) string {
	elements := check.Elements(path)
	if len(elements) == 0 {
		return ""
	}

	return elements[len(elements)-1]
}

// remedyFor says where the credential belongs.
func remedyFor(path string) string {
	last := lastOf(check.Parent(path))
	switch {
	case strings.HasPrefix(path, "gitops.git.url"):
		return "give it under gitops.git.auth"
	case strings.HasSuffix(path, ".repository"):
		return "give it as username and password beside the repository"
	case last == "endpoints" && strings.HasPrefix(path, "talos.registries"):
		return "give it as username and password of the registry"
	case strings.HasPrefix(path, "manifests.extra"):
		return "send it as one of manifests.extraHeaders"
	case strings.HasPrefix(path, "proxmox."):
		return "give it as apiToken or password, as a secret"
	case last == "kernelArgs":
		return "remove it, since whoever reads the node's command line reads it"
	default:
		return "remove it, or give it where a secret can be written"
	}
}

// refusePlainText records a credential in a free text, of which nothing was written secure.
func (d *decoder) refusePlainText(path, text string) bool {
	what, _ := credential.InText(text)
	if what == "" && credential.Sensitive(lastOf(path)) && !credential.Refers(text) {
		what = "the value of " + lastOf(path)
	}
	if what == "" {
		return false
	}
	d.fail(path, "holds %s in plain text: write the text as a secret", what)

	return true
}

// refusePlainNode records a credential in free text that is written as YAML, of which some values may be secure.
func (d *decoder) refusePlainNode(path string, node *yaml.Node) bool {
	what, at, _ := credential.InTree(node, func(at []credential.Step) bool { return d.isSecure(stepsBelow(path, at)) })
	if what == "" {
		return false
	}
	d.fail(stepsBelow(path, at), "holds %s in plain text: write the value as a secret", what)

	return true
}

// stepsBelow returns the path of a place in a tree.
func stepsBelow(path string, at []credential.Step) string {
	for _, step := range at {
		if step.IsKey() {
			path = check.Key(path, step.Key)
		} else {
			path = check.Index(path, step.Index)
		}
	}

	return path
}
