// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package stack

import (
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/talos-proxmox/talos-proxmox/internal/check"
	"github.com/talos-proxmox/talos-proxmox/internal/credential"
)

// refusePlain records a credential that is written where no secret can be, and reports whether it did.
func (d *decoder) refusePlain(path, value string) bool {
	what := credential.In(value)
	if what == "" && credential.Sensitive(lastOf(path)) && !credential.Refers(value) && inFreeMap(path) {
		what = "the value of " + lastOf(path)
	}
	if what == "" {
		return false
	}
	d.fail(path, "holds %s in plain text: %s", what, remedyFor(path))

	return true
}

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
	what := credential.In(text)
	if what == "" && credential.Sensitive(lastOf(path)) && !credential.Refers(text) {
		what = "the value of " + lastOf(path)
	}
	decoder := yaml.NewDecoder(strings.NewReader(text))
	for what == "" {
		var document yaml.Node
		if err := decoder.Decode(&document); err != nil {
			break // the end, or no YAML, which the rules report where it has to be
		}
		what, _ = d.plainIn("", &document, func(string) bool { return false })
	}
	if what == "" {
		return false
	}
	d.fail(path, "holds %s in plain text: write the text as a secret", what)

	return true
}

// refusePlainNode records a credential in free text that is written as YAML, of which some values may be secure.
func (d *decoder) refusePlainNode(path string, node *yaml.Node) bool {
	what, at := d.plainIn(path, node, d.isSecure)
	if what == "" {
		return false
	}
	d.fail(at, "holds %s in plain text: write the value as a secret", what)

	return true
}

// plainIn returns what credential is written plainly in a tree, and where.
//
//nolint:gocyclo // one case for each form of a node
func (d *decoder) plainIn(path string, node *yaml.Node, secure func(path string) bool) (what, at string) {
	switch node.Kind {
	case yaml.DocumentNode, yaml.SequenceNode:
		for i, item := range node.Content {
			if what, at := d.plainIn(check.Index(path, i), item, secure); what != "" {
				return what, at
			}
		}
	case yaml.MappingNode:
		isSecret := false
		for i := 0; i+1 < len(node.Content); i += 2 {
			key, value := node.Content[i].Value, node.Content[i+1]
			isSecret = isSecret || key == "kind" && value.Value == "Secret"
		}
		for i := 0; i+1 < len(node.Content); i += 2 {
			key, value := node.Content[i].Value, node.Content[i+1]
			below := check.Key(path, key)
			if isSecret && (key == "data" || key == "stringData") {
				if at := d.firstPlain(below, value, secure); at != "" {
					return "a Kubernetes Secret", at
				}

				continue
			}
			if value.Kind == yaml.ScalarNode && value.ShortTag() == "!!str" && credential.Sensitive(key) &&
				!credential.Refers(value.Value) && !secure(below) {
				return "the value of " + key, below
			}
			if what, at := d.plainIn(below, value, secure); what != "" {
				return what, at
			}
		}
	case yaml.ScalarNode:
		if !secure(path) {
			return credential.In(node.Value), path
		}
	}

	return "", ""
}

// firstPlain returns the first value of a block that is not secure.
func (d *decoder) firstPlain(path string, node *yaml.Node, secure func(path string) bool) string {
	for i := 0; i+1 < len(node.Content); i += 2 {
		at := check.Key(path, node.Content[i].Value)
		if value := node.Content[i+1]; value.Kind == yaml.ScalarNode && value.Value != "" && !secure(at) {
			return at
		}
	}

	return ""
}
