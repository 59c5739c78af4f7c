// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

// Package talosapi implements the interfaces of package cluster against real nodes: it calls the Talos API
// of each node and opens the Kubernetes API with the credentials that a control plane issues.
package talosapi
