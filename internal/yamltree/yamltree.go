// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

// Package yamltree reads trees of YAML as their readers see them.
package yamltree

import "go.yaml.in/yaml/v3"

// Resolve returns a tree without aliases and merge keys, as Pulumi, Talos and Kubernetes read it. An anchor that holds itself ends.
func Resolve(node *yaml.Node) *yaml.Node { return resolved(node, map[*yaml.Node]bool{}) }

// Child returns the value of a mapping's key, or nil.
func Child(node *yaml.Node, key string) *yaml.Node {
	for i := 0; i+1 < len(node.Content) && node.Kind == yaml.MappingNode; i += 2 {
		if node.Content[i].Value == key {
			return node.Content[i+1]
		}
	}

	return nil
}

// resolved returns a tree without aliases and merge keys, as Pulumi reads it. An anchor that holds itself ends.
func resolved(node *yaml.Node, around map[*yaml.Node]bool) *yaml.Node {
	if node.Kind == yaml.AliasNode {
		node = node.Alias
	}
	if around[node] {
		return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!null", Line: node.Line}
	}
	around[node] = true
	defer delete(around, node)
	out := *node
	out.Content = nil
	if node.Kind != yaml.MappingNode {
		for _, item := range node.Content {
			out.Content = append(out.Content, resolved(item, around))
		}

		return &out
	}
	var merged []*yaml.Node
	for i := 0; i+1 < len(node.Content); i += 2 {
		key, value := node.Content[i], resolved(node.Content[i+1], around)
		switch {
		case key.ShortTag() != "!!merge":
			out.Content = append(out.Content, key, value)
		case value.Kind == yaml.SequenceNode:
			merged = append(merged, value.Content...)
		default:
			merged = append(merged, value)
		}
	}
	for _, m := range merged { // what is written, or merged first, wins
		for i := 0; i+1 < len(m.Content); i += 2 {
			if Child(&out, m.Content[i].Value) == nil {
				out.Content = append(out.Content, m.Content[i], m.Content[i+1])
			}
		}
	}

	return &out
}
