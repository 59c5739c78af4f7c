// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package stack

import (
	"reflect"
	"strings"

	"github.com/talos-proxmox/talos-proxmox/internal/check"
	"github.com/talos-proxmox/talos-proxmox/spec"
)

// layer names one place of the stack file that sets something for a node.
type layer struct {
	path string
	node spec.Node
	// ofHost says that the layer is made of a host's entry, whose datastore and zone it spreads.
	ofHost bool
	// vmidFrom is the key that the VM id was made of; empty when vmId itself is written.
	vmidFrom string
}

// layers holds the places that set something for one node, the weakest first.
type layers struct {
	// own is where a setting would be written for this node alone, or for its pool.
	own string
	// hostsAt is the pool whose hosts placed the node; empty when others did.
	hostsAt string
	all     []layer
}

// merged lays all layers over each other.
func (ls layers) merged() spec.Node {
	var node spec.Node
	for _, l := range ls.all {
		n := spec.Clone(l.node)
		merge(reflect.ValueOf(&node).Elem(), reflect.ValueOf(&n).Elem())
	}

	return node
}

// origin returns where the node's setting of that path is written: "memory" may come from
// "defaults.worker.memory".
func (ls layers) origin(rel string) string {
	for i := len(ls.all) - 1; i >= 0; i-- {
		if l := ls.all[i]; has(reflect.ValueOf(l.node), check.Elements(rel)) {
			switch {
			case rel == "vmId" && l.vmidFrom != "":
				rel = l.vmidFrom
			case l.ofHost && strings.HasSuffix(rel, ".datastore"):
				rel = "datastore"
			case l.ofHost && rel != "zone":
				continue
			}

			return check.Join(l.path, rel)
		}
	}
	if rel == "host" && ls.hostsAt != "" {
		return check.Join(ls.hostsAt, "hosts")
	}

	return check.Join(ls.own, rel)
}

// has reports whether something is written at the path below v.
func has(v reflect.Value, path []string) bool {
	for v.Kind() == reflect.Pointer {
		if v.IsNil() {
			return false
		}
		v = v.Elem()
	}
	if len(path) == 0 {
		return !v.IsZero() || v.Kind() != reflect.Struct
	}

	switch v.Kind() {
	case reflect.Struct:
		for _, f := range spec.Fields(v.Type()) {
			if f.Name == path[0] {
				field := v.FieldByIndex(f.Index)

				return !field.IsZero() && has(field, path[1:])
			}
		}
	case reflect.Map:
		element := v.MapIndex(reflect.ValueOf(path[0]))

		return element.IsValid() && has(element, path[1:])
	case reflect.Slice:
		return v.Len() > 0
	}

	return false
}
