// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

// Package etcd models an etcd cluster: its members and learners, who leads, and what needs a quorum.
package etcd
