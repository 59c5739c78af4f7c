// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package rules

import (
	"slices"
	"strings"

	"github.com/talos-proxmox/talos-proxmox/internal/check"
	"github.com/talos-proxmox/talos-proxmox/spec"
)

const nameRule = "is no host name: use up to 63 lower-case letters, digits and dashes, beginning and ending with a letter or digit"

// node checks one node.
func (r *rules) node(n spec.NamedNode) {
	at := nodePath(n)
	if !labelForm.MatchString(n.Name) {
		r.l.Addf(at, "%q %s", n.Name, nameRule)
	} else if !labelForm.MatchString(*n.Hostname) {
		r.l.Addf(at+".hostname", "%q %s", *n.Hostname, nameRule)
	}
	if n.Role == nil {
		r.l.Addf(at+".role", "is required: controlplane or worker")
	}
	r.identity(at, n)
	if _, ok := r.c.Images[*n.Node.Image]; !ok {
		hint := ": add it to images"
		if best := check.Nearest(*n.Node.Image, sortedKeys(r.c.Images)); best != "" {
			hint = "; did you mean \"" + best + "\"?"
		}
		r.l.Addf(at+".image", "there is no image %q%s", *n.Node.Image, hint)
	}
	r.processor(at, n)
	r.memory(at, n)
	r.firmware(at, n)
	r.guest(at, n)
	r.gpu(at, n)
	r.usb(at, n)
	r.disks(at, n)
	r.networks(at, n)
	r.hardware(at, n)
	r.kubernetesNode(at, n)
}

// identity checks where the VM runs and under which id.
func (r *rules) identity(at string, n spec.NamedNode) {
	switch {
	case n.Host == nil:
		r.l.Addf(at+".host", "is required, since there is neither proxmox.defaultHost nor a host in proxmox.hosts")
	case r.c.Proxmox.DefaultHost != nil && *n.Host == *r.c.Proxmox.DefaultHost:
		// An unknown default host is told once, where it is written.
	case len(r.c.Proxmox.Hosts) > 0:
		r.knownHost(at+".host", *n.Host)
	case !hostForm.MatchString(*n.Host):
		r.l.Addf(at+".host", "%q is no name of a Proxmox host", *n.Host)
	}
	if n.VMID != nil {
		return
	}
	if _, numbered := spec.NumberOf(n.Name); numbered {
		r.l.Addf(at+".vmId", "is required, since there is no cluster.vmIdBase: set one of them")
	} else {
		r.l.Addf(at+".vmId", "is required, since the name has no number at its end that could give it one")
	}
}

// kubernetesNode checks what the node says of itself in Talos and Kubernetes.
func (r *rules) kubernetesNode(at string, n spec.NamedNode) {
	keysMatch(r, at+".labels", n.Labels, qualified, "is no key of a Kubernetes label")
	for _, key := range sortedKeys(n.Labels) {
		if !isLabelValue(n.Labels[key]) {
			r.l.Addf(check.Key(at+".labels", key), "%q is no value of a Kubernetes label", n.Labels[key])
		}
	}
	keysMatch(r, at+".annotations", n.Annotations, qualified, "is no key of a Kubernetes annotation")
	keysMatch(r, at+".taints", n.Taints, qualified, "is no key of a Kubernetes taint")
	for _, key := range sortedKeys(n.Taints) {
		value, effect, ok := strings.Cut(n.Taints[key], ":")
		if !ok || !isLabelValue(value) || !slices.Contains([]string{"NoSchedule", "PreferNoSchedule", "NoExecute"}, effect) {
			r.l.Addf(check.Key(at+".taints", key),
				"%q is no taint: write <value>:<effect> or :<effect>, with NoSchedule, PreferNoSchedule or "+
					"NoExecute", n.Taints[key])
		}
	}
	if n.Zone != nil && !isLabelValue(*n.Zone) {
		r.l.Addf(at+".zone", "%q is no value of a Kubernetes label", *n.Zone)
	}
	keysMatch(r, at+".sysctls", n.Sysctls, sysctlForm.MatchString, "is no kernel parameter such as vm.nr_hugepages")
	keysMatch(r, at+".kernelModules", n.KernelModules, moduleForm.MatchString, "is no name of a kernel module")
	if !strings.HasPrefix(*n.InstallDisk, "/dev/") {
		r.l.Addf(at+".installDisk", "%q is no disk of the guest such as /dev/sda", *n.InstallDisk)
	}
	r.patches(at+".patches", n.Patches)
}
