// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

// Package kubeapply applies day-0 manifests to a living cluster, deletes what left them, and waits for Flux.
package kubeapply
