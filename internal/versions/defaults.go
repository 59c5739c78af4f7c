// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package versions

const (
	// DefaultTalos is the Talos of a stack that names none. The tag of spec.Talos.Version repeats it.
	DefaultTalos = "v1.12.4"
	// DefaultKubernetes is the Kubernetes of a stack that names none. The tag of
	// spec.Kubernetes.Version repeats it.
	DefaultKubernetes = "v1.35.0"
	// CoreDNSImage is the image of a CoreDNS that replaces Talos's own, where the stack names none: the
	// one of the default Talos.
	CoreDNSImage = "registry.k8s.io/coredns/coredns:v1.13.2"
)
