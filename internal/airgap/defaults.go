// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package airgap

import (
	"github.com/talos-proxmox/talos-proxmox/internal/versions"
)

// own are the images that a Talos release runs when its configuration names none.
type own struct {
	// talos is the release that they were read from.
	talos string

	etcd, coreDNS, flannel, pause string
}

// pause is the sandbox image of containerd 2, as releases before 1.13 have it.
const pause = "registry.k8s.io/pause:3.10"

// imagesOf are the images of a release; not exact when they are those of the nearest known one.
func imagesOf(version string) (images own, exact bool) {
	talos, err := versions.ParseTalos(version)
	if err != nil {
		return releases()[0], false
	}
	var nearest own
	for _, r := range releases() {
		known, err := versions.ParseTalos(r.talos)
		if err != nil {
			continue
		}
		if known.Compare(talos) == 0 {
			return r, true
		}
		if nearest.talos == "" || known.Contract() == talos.Contract() || talos.Contract().NewerThan(known.Contract()) {
			nearest = r
		}
	}

	return nearest, false
}

// releases are known releases, oldest first, with what their sources say.
func releases() []own {
	const etcd, coreDNS, flannel = "registry.k8s.io/etcd:", "registry.k8s.io/coredns/coredns:", "ghcr.io/siderolabs/flannel:"
	const oldEtcd = "gcr.io/etcd-development/etcd:"

	return []own{
		{"v1.10.0", oldEtcd + "v3.5.21", coreDNS + "v1.12.1", flannel + "v0.26.7", pause},
		{"v1.11.0", oldEtcd + "v3.6.4", coreDNS + "v1.12.2", flannel + "v0.27.2", pause},
		{"v1.11.3", oldEtcd + "v3.6.5", coreDNS + "v1.12.4", flannel + "v0.27.4", pause},
		{"v1.11.5", oldEtcd + "v3.6.5", coreDNS + "v1.12.4", flannel + "v0.27.4", pause},
		{"v1.11.6", oldEtcd + "v3.6.5", coreDNS + "v1.12.4", flannel + "v0.27.4", pause},
		{"v1.12.0", etcd + "v3.6.7", coreDNS + "v1.13.2", flannel + "v0.27.4", pause},
		{"v1.12.1", etcd + "v3.6.7", coreDNS + "v1.13.2", flannel + "v0.27.4", pause},
		{"v1.12.4", etcd + "v3.6.7", coreDNS + "v1.13.2", flannel + "v0.27.4", pause},
		{"v1.12.7", etcd + "v3.6.9", coreDNS + "v1.13.2", flannel + "v0.27.4", pause},
		{"v1.13.0", etcd + "v3.6.9", coreDNS + "v1.14.2", flannel + "v0.28.4", "registry.k8s.io/pause:3.10.1"},
		{"v1.13.9", etcd + "v3.6.12", coreDNS + "v1.14.6", flannel + "0.28.8", "registry.k8s.io/pause:3.10.1"},
	}
}
