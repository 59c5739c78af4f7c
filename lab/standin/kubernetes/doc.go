// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

// Package kubernetes stands in for the kubernetes plugin 4.33.0: any kind by server-side apply, and
// Helm releases by Helm's own SDK, against a real API server.
package kubernetes
