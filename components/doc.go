// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

// Package components is the library: Pulumi components that take Proxmox VE hosts to a Talos cluster
// handed to git. Each takes plain settings of package spec, checks them itself and registers its
// children under its own name.
//
// A component never builds a provider from credentials, the Kubernetes provider of the cluster's own
// kubeconfig apart. Make providers with [NewProxmoxProvider] and [NewTalosProvider], and hand them
// to the components with [pulumi.Providers]: explicit providers, since these two plugins would
// otherwise be taken in whatever version is newest.
package components
