// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package policy

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"

	"github.com/talos-proxmox/talos-proxmox/internal/vm"
	"github.com/talos-proxmox/talos-proxmox/spec"
)

// Machines maps node names to the VMs that the state remembers.
type Machines map[string]vm.Machine

// machinesOf returns the machines that a resource remembers; false when it remembers none, or not known yet.
func machinesOf(r Resource) (Machines, bool) {
	if r.Type != stashType || !strings.HasSuffix(r.Name, "-machines") && !strings.HasSuffix(r.Name, "-machine") {
		return nil, false
	}

	return readMachines(plain(r.Inputs["input"]))
}

// readMachines reads machines from plain values; false when they are something else.
func readMachines(input any) (Machines, bool) {
	text, err := json.Marshal(input)
	if err != nil {
		return nil, false
	}
	var machines Machines
	if json.Unmarshal(text, &machines) != nil || len(machines) == 0 {
		return nil, false
	}
	for _, m := range machines {
		if m.VM.Role == "" {
			return nil, false
		}
	}

	return machines, true
}

// plain returns a value as JSON has it, null where it is not known.
func plain(v resource.PropertyValue) any {
	v = known(v)
	switch {
	case v.IsArray():
		all := []any{}
		for _, element := range v.ArrayValue() {
			all = append(all, plain(element))
		}

		return all
	case v.IsObject():
		all := map[string]any{}
		for key, element := range v.ObjectValue() {
			all[string(key)] = plain(element)
		}

		return all
	default:
		return v.V
	}
}

// checkReplaced compares the machines with those in the state. What cannot be compared may be replaced.
func (p *Pack) checkReplaced(r Resource) []string {
	now, ok := machinesOf(r)
	if !ok {
		return nil
	}
	before, err := p.Before()
	if err != nil {
		return []string{fmt.Sprintf("whether a VM would be replaced is not known, since the state cannot be read: %s", err)}
	}
	var found []string
	for _, name := range slices.Sorted(maps.Keys(now)) {
		if was, ok := before[r.URN][name]; ok && vm.Replaces(was.VM, now[name].VM) {
			found = append(found, fmt.Sprintf("the VM of node %s would be replaced (%s)", name, difference(was.VM, now[name].VM)))
		}
	}

	return found
}

// difference says what replaces a VM.
func difference(was, now vm.Identity) string {
	var all []string
	for _, d := range []struct {
		what     string
		was, now any
	}{
		{"lifecycle.replace", was.Rebuild, now.Rebuild}, {"host", was.Host, now.Host}, {"vmId", was.VMID, now.VMID},
		{"efiDisk", was.EFIDisk, now.EFIDisk}, {"tpm", was.TPM, now.TPM},
	} {
		if d.was != d.now {
			all = append(all, fmt.Sprintf("%s: %v => %v", d.what, d.was, d.now))
		}
	}

	return strings.Join(all, ", ")
}

// checkApart looks for hosts with several control planes of one cluster.
func (p *Pack) checkApart(r Resource) []string {
	machines, _ := machinesOf(r)
	on := map[string][]string{}
	for _, name := range slices.Sorted(maps.Keys(machines)) {
		if v := machines[name].VM; v.Role == string(spec.ControlPlane) {
			on[v.Host] = append(on[v.Host], name)
		}
	}
	var found []string
	for _, host := range slices.Sorted(maps.Keys(on)) {
		if len(on[host]) > 1 {
			found = append(found, fmt.Sprintf("control planes %s share host %s: name another host for one of them",
				strings.Join(on[host], ", "), host))
		}
	}

	return found
}
