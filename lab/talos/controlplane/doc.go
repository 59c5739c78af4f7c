// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

// Package controlplane runs the Kubernetes of a cluster while its etcd has a quorum, configured as its control
// planes are, and applies their bootstrap manifests.
package controlplane
