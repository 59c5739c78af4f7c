// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package vms

import (
	"strings"

	"github.com/talos-proxmox/talos-proxmox/internal/check"
	"github.com/talos-proxmox/talos-proxmox/internal/rules/scope"
	"github.com/talos-proxmox/talos-proxmox/spec"
)

// hosts checks what the nodes on one host share: control planes, memory, PCI devices.
func (r *rules) hosts() {
	controlPlanes := map[string][]spec.NamedNode{}
	memory := map[string]spec.MiB{}
	devices := map[string]string{}
	for _, n := range r.Config.Nodes {
		if n.Host == nil {
			continue
		}
		if n.IsControlPlane() {
			controlPlanes[*n.Host] = append(controlPlanes[*n.Host], n)
		}
		memory[*n.Host] += *n.Memory
		if n.GPU == nil {
			continue
		}
		for i, device := range n.GPU.Devices {
			if other := inUse(devices, *n.Host+" "+device); other != "" && other != n.Name {
				r.Addf(check.Index(scope.NodePath(n)+".gpu.devices", i),
					"%s of host %s goes to node %s already: a device is in one VM at a time", device, *n.Host, other)
			}
			devices[*n.Host+" "+device] = n.Name
		}
	}
	for _, host := range scope.SortedKeys(memory) {
		if has := r.Config.Proxmox.Hosts[host].Memory; has != nil && memory[host] > *has {
			r.Addf(check.Key("proxmox.hosts", host)+".memory",
				"%d MiB is less than the %d MiB of the nodes on it: move nodes, or make them smaller", *has, memory[host])
		}
	}
	r.spread(controlPlanes)
}

// inUse returns the node that has a device of a host, or a function of it; "" where none has.
func inUse(devices map[string]string, device string) string {
	for _, taken := range scope.SortedKeys(devices) {
		if taken == device || taken == scope.Functions(device) || scope.Functions(taken) == device {
			return devices[taken]
		}
	}

	return ""
}

// spread records control planes that share a host while another host has none.
func (r *rules) spread(controlPlanes map[string][]spec.NamedNode) {
	var free []string
	for _, host := range scope.SortedKeys(r.Config.Proxmox.Hosts) {
		if len(controlPlanes[host]) == 0 {
			free = append(free, host)
		}
	}
	if len(free) == 0 {
		return
	}
	for _, host := range scope.SortedKeys(controlPlanes) {
		for i, n := range controlPlanes[host] {
			if i > 0 && !*n.AllowSharedHost && !r.Wrong(scope.NodePath(n)+".host") {
				r.Addf(scope.NodePath(n)+".host",
					"%s runs control plane %s already while %s runs none: choose another host, or set "+
						"allowSharedHost to true", host, controlPlanes[host][0].Name, strings.Join(free, ", "))
			}
		}
	}
}
