// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

// Package health checks a cluster, waits until it is healthy, and reports the status of its nodes and what
// differs from the stack.
package health
