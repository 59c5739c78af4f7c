// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package scope

import "strings"

// ReservedLabel reports whether the NodeRestriction admission plugin keeps kubelets from setting the label.
func ReservedLabel(label string) bool {
	prefix, _, ok := strings.Cut(label, "/")
	if !ok {
		return false
	}
	inside := func(domain string) bool { return prefix == domain || strings.HasSuffix(prefix, "."+domain) }
	if inside("node-restriction.kubernetes.io") {
		return true
	}
	if !inside("kubernetes.io") && !inside("k8s.io") || inside("kubelet.kubernetes.io") || inside("node.kubernetes.io") ||
		strings.HasSuffix(prefix, ".feature.node.kubernetes.io") {
		return false
	}
	switch label {
	case "kubernetes.io/hostname", "kubernetes.io/os", "kubernetes.io/arch",
		"topology.kubernetes.io/zone", "topology.kubernetes.io/region",
		"failure-domain.beta.kubernetes.io/zone", "failure-domain.beta.kubernetes.io/region",
		"beta.kubernetes.io/os", "beta.kubernetes.io/arch", "beta.kubernetes.io/instance-type":
		return false
	}

	return true
}
