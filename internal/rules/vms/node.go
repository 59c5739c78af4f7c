// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package vms

import (
	"slices"
	"strings"

	"github.com/talos-proxmox/talos-proxmox/internal/check"
	"github.com/talos-proxmox/talos-proxmox/internal/rules/scope"
	"github.com/talos-proxmox/talos-proxmox/spec"
)

const nameRule = "is no host name: use up to 63 lower-case letters, digits and dashes, beginning and ending with a letter or digit"

// node checks one node.
func (r *rules) node(n spec.NamedNode) {
	at := scope.NodePath(n)
	if !scope.LabelForm.MatchString(n.Name) {
		r.Addf(at, "%q %s", n.Name, nameRule)
	} else if !scope.LabelForm.MatchString(*n.Hostname) {
		r.Addf(at+".hostname", "%q %s", *n.Hostname, nameRule)
	}
	if n.Role == nil {
		r.Addf(at+".role", "is required: controlplane or worker")
	}
	r.identity(at, n)
	if _, ok := r.Config.Images[*n.Node.Image]; !ok {
		hint := ": add it to images"
		if best := check.Nearest(*n.Node.Image, scope.SortedKeys(r.Config.Images)); best != "" {
			hint = "; did you mean \"" + best + "\"?"
		}
		r.Addf(at+".image", "there is no image %q%s", *n.Node.Image, hint)
	}
	r.processor(at, n)
	r.memory(at, n)
	r.firmware(at, n)
	r.guest(at, n)
	r.gpu(at, n)
	r.usb(at, n)
	r.disks(at, n)
	r.mounts(at, n)
	r.units(at, n)
	r.trustedModule(at, n)
	r.hardware(at, n)
	r.drivers(at, n)
	r.kubernetesNode(at, n)
}

// identity checks where the VM runs and under which id.
func (r *rules) identity(at string, n spec.NamedNode) {
	switch {
	case n.Host == nil:
		r.Addf(at+".host", "is required, since there is neither proxmox.defaultHost nor a host in proxmox.hosts")
	case r.Config.Proxmox.DefaultHost != nil && *n.Host == *r.Config.Proxmox.DefaultHost:
		// An unknown default host is reported once, where it is written.
	case len(r.Config.Proxmox.Hosts) > 0:
		r.KnownHost(at+".host", *n.Host)
	case !scope.HostForm.MatchString(*n.Host):
		r.Addf(at+".host", "%q is no name of a Proxmox host", *n.Host)
	}
	if n.VMID != nil {
		return
	}
	if _, numbered := spec.NumberOf(n.Name); numbered {
		r.Addf(at+".vmId", "is required, since there is no cluster.vmIdBase: set one of them")
	} else {
		r.Addf(at+".vmId", "is required, since the name has no number at its end that could give it one")
	}
}

// kubernetesNode checks what the node says of itself in Talos and Kubernetes.
func (r *rules) kubernetesNode(at string, n spec.NamedNode) {
	scope.KeysMatch(r.Scope, at+".labels", n.Labels, scope.IsQualified, "is no key of a Kubernetes label")
	for _, key := range scope.SortedKeys(n.Labels) {
		if !scope.IsLabelValue(n.Labels[key]) {
			r.Addf(check.Key(at+".labels", key), "%q is no value of a Kubernetes label", n.Labels[key])
		}
	}
	scope.KeysMatch(r.Scope, at+".annotations", n.Annotations, scope.IsQualified, "is no key of a Kubernetes annotation")
	scope.KeysMatch(r.Scope, at+".taints", n.Taints, scope.IsQualified, "is no key of a Kubernetes taint")
	for _, key := range scope.SortedKeys(n.Taints) {
		value, effect, ok := strings.Cut(n.Taints[key], ":")
		if !ok || !scope.IsLabelValue(value) || !slices.Contains([]string{"NoSchedule", "PreferNoSchedule", "NoExecute"}, effect) {
			r.Addf(check.Key(at+".taints", key),
				"%q is no taint: write <value>:<effect> or :<effect>, with NoSchedule, PreferNoSchedule or "+
					"NoExecute", n.Taints[key])
		}
	}
	if n.Zone != nil && !scope.IsLabelValue(*n.Zone) {
		r.Addf(at+".zone", "%q is no value of a Kubernetes label", *n.Zone)
	}
	r.Sysctls(at+".sysctls", n.Sysctls)
	scope.KeysMatch(r.Scope, at+".kernelModules", n.KernelModules, scope.ModuleForm.MatchString, "is no name of a kernel module")
	r.labels(at, n)
	r.installDisk(at, n)
	r.Patches(at+".patches", n.Patches)
}
