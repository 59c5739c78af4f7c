// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

// Package gitops describes what Flux and Argo CD get: their charts and values, the credentials of the
// repository, the objects that make them follow it, and what a change from one to the other means for a
// running cluster. It is pure: it registers nothing and opens no connection.
package gitops
