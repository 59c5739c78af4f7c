// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package stack

import (
	"fmt"
	"maps"
	"slices"

	"github.com/talos-proxmox/talos-proxmox/internal/check"
	"github.com/talos-proxmox/talos-proxmox/spec"
)

// expansion turns a file into nodes. It is pure: what a node gets follows from what is written for
// it, for its pool and for all, never from other nodes.
type expansion struct {
	file     File
	problems check.List
	nodes    []spec.NamedNode
	// layers by node name, to find out where a value was written.
	layers map[string]layers
}

// expand makes the configuration that the file describes. It does not apply built-in defaults.
func expand(f File) (spec.Config, *expansion) {
	e := &expansion{file: f, layers: map[string]layers{}}
	for _, name := range slices.Sorted(maps.Keys(f.Pools)) {
		e.expandPool(name, f.Pools[name])
	}
	for _, name := range slices.Sorted(maps.Keys(f.Nodes)) {
		if _, ofPool := e.layers[name]; ofPool {
			continue
		}
		path := check.Key("nodes", name)
		e.add(name, path, placed{}, layer{path: path, node: f.Nodes[name]})
	}

	images := map[string]spec.Image{spec.DefaultImage: spec.Clone(f.Image)}
	for name, img := range f.Images {
		if name == spec.DefaultImage {
			e.problems.Addf(check.Key("images", name), "%q is the name of the image under the key image: write its settings there", name)

			continue
		}
		images[name] = over(f.Image, img)
	}

	return spec.Config{
		Proxmox: f.Proxmox, Images: images, Cluster: f.Cluster, Talos: f.Talos, Kubernetes: f.Kubernetes, CNI: f.CNI,
		Manifests: f.Manifests, GitOps: f.GitOps, Lifecycle: f.Lifecycle, Output: f.Output, Nodes: e.nodes,
	}, e
}

// placed holds the hosts over which a pool spreads its nodes.
type placed struct {
	pool  string
	hosts []string
}

// add puts a node together from the layers of its own, the weakest first, and the general ones.
func (e *expansion) add(name, own string, from placed, specific ...layer) {
	if _, twice := e.layers[name]; twice {
		e.problems.Addf(own, "the name %q is another node's: choose another prefix or name", name)

		return
	}
	all, role := e.general(specific)
	if role != "" {
		all = append(all, roleLayer(e.file.Defaults, role))
	}
	if size, ok := e.size(slices.Concat(all, specific)); ok {
		all = append(all, size)
	}

	// The host is looked up before its own layer is laid in, below pools and nodes.
	node := spec.NamedNode{Name: name}
	disks := map[string]bool{}
	for _, l := range slices.Concat(all, specific) {
		if l.node.Host != nil {
			node.Host = l.node.Host
		}
		for disk := range l.node.Disks {
			disks[disk] = true
		}
	}
	hostsAt := ""
	if node.Host == nil && len(from.hosts) > 0 {
		if host, ok := spec.PlaceIn(from.hosts, name); ok {
			node.Host, hostsAt = &host, from.pool
		}
	} else if host, ok := spec.PlaceNode(e.file.Proxmox, node); ok {
		node.Host = &host
	}
	if node.Host != nil {
		all = append(all, hostLayer(e.file.Proxmox, *node.Host, disks))
	}
	ls := layers{own: own, hostsAt: hostsAt, all: slices.Concat(all, specific)}
	host := node.Host
	node.Node = ls.merged()
	node.Host = host
	e.layers[name] = ls
	e.nodes = append(e.nodes, node)
}

// general returns the layers for every node, and the node's role where it is said.
func (e *expansion) general(specific []layer) ([]layer, spec.Role) {
	var role spec.Role
	for _, l := range specific {
		if l.node.Role != nil {
			role = *l.node.Role
		}
	}

	return []layer{{path: "defaults.all", node: e.file.Defaults.All}}, role
}

// roleLayer returns the defaults of a role; nothing for a role there is not.
func roleLayer(d Defaults, role spec.Role) layer {
	if role == spec.ControlPlane {
		return layer{path: "defaults.controlPlane", node: d.ControlPlane}
	}
	if role == spec.Worker {
		return layer{path: "defaults.worker", node: d.Worker}
	}

	return layer{}
}

// size returns the layer of the size class that the strongest layer names.
func (e *expansion) size(ls []layer) (layer, bool) {
	for _, l := range slices.Backward(ls) {
		if l.node.Size == nil {
			continue
		}
		name := *l.node.Size
		size, ok := e.file.Sizes[name]
		if !ok {
			message := fmt.Sprintf("there is no size %q", name)
			if best := check.Nearest(name, slices.Sorted(maps.Keys(e.file.Sizes))); best != "" {
				message += fmt.Sprintf("; did you mean %q?", best)
			} else {
				message += ": add it to sizes"
			}
			e.problems.Addf(check.Join(l.path, "size"), "%s", message)
		}

		return layer{path: check.Key("sizes", name), node: size}, ok
	}

	return layer{}, false
}

// hostLayer returns what the host pool says about a node on the host: its zone, and the datastore of
// each disk that the node has.
func hostLayer(p spec.Proxmox, host string, disks map[string]bool) layer {
	h, ok := p.Hosts[host]
	if !ok {
		return layer{}
	}
	l := layer{path: check.Key("proxmox.hosts", host), ofHost: true, node: spec.Node{Zone: h.Zone}}
	if h.Datastore == nil {
		return l
	}
	l.node.OSDisk = &spec.Disk{Datastore: h.Datastore}
	for name := range disks {
		if l.node.Disks == nil {
			l.node.Disks = map[string]spec.Disk{}
		}
		l.node.Disks[name] = spec.Disk{Datastore: h.Datastore}
	}

	return l
}
