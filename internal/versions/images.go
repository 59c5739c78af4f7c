// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package versions

// Images holds the images that a Talos release runs when its configuration names none.
type Images struct {
	// Talos is the release that they were read from.
	Talos string
	// Etcd, CoreDNS, Flannel and Pause are image references.
	Etcd, CoreDNS, Flannel, Pause string
}

// ImagesOf returns the images of a release; not exact when they are those of the nearest known one.
func ImagesOf(version string) (images Images, exact bool) {
	talos, err := ParseTalos(version)
	if err != nil {
		return releases()[0], false
	}
	var nearest Images
	for _, r := range releases() {
		known, err := ParseTalos(r.Talos)
		if err != nil {
			continue
		}
		if known.Compare(talos) == 0 {
			return r, true
		}
		if nearest.Talos == "" || known.Contract() == talos.Contract() || talos.Contract().NewerThan(known.Contract()) {
			nearest = r
		}
	}

	return nearest, false
}

// releases returns known releases, oldest first, with what their sources say.
func releases() []Images {
	const etcd, coreDNS, flannel = "registry.k8s.io/etcd:", "registry.k8s.io/coredns/coredns:", "ghcr.io/siderolabs/flannel:"
	const oldEtcd, pause = "gcr.io/etcd-development/etcd:", "registry.k8s.io/pause:"

	return []Images{
		{"v1.10.0", oldEtcd + "v3.5.21", coreDNS + "v1.12.1", flannel + "v0.26.7", pause + "3.10"},
		{"v1.11.0", oldEtcd + "v3.6.4", coreDNS + "v1.12.2", flannel + "v0.27.2", pause + "3.10"},
		{"v1.11.3", oldEtcd + "v3.6.5", coreDNS + "v1.12.4", flannel + "v0.27.4", pause + "3.10"},
		{"v1.11.5", oldEtcd + "v3.6.5", coreDNS + "v1.12.4", flannel + "v0.27.4", pause + "3.10"},
		{"v1.11.6", oldEtcd + "v3.6.5", coreDNS + "v1.12.4", flannel + "v0.27.4", pause + "3.10"},
		{"v1.12.0", etcd + "v3.6.7", coreDNS + "v1.13.2", flannel + "v0.27.4", pause + "3.10"},
		{"v1.12.1", etcd + "v3.6.7", coreDNS + "v1.13.2", flannel + "v0.27.4", pause + "3.10"},
		{"v1.12.4", etcd + "v3.6.7", coreDNS + "v1.13.2", flannel + "v0.27.4", pause + "3.10"},
		{"v1.12.7", etcd + "v3.6.9", coreDNS + "v1.13.2", flannel + "v0.27.4", pause + "3.10"},
		{"v1.13.0", etcd + "v3.6.9", coreDNS + "v1.14.2", flannel + "v0.28.4", pause + "3.10.1"},
		{"v1.13.9", etcd + "v3.6.12", coreDNS + "v1.14.6", flannel + "0.28.8", pause + "3.10.1"},
		{"v1.14.1", etcd + "3.7.1", coreDNS + "v1.14.7", flannel + "0.28.9", pause + "3.10.2"},
	}
}
