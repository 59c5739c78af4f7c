// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

// Package daemon is a running lab: a site with its services put together, and the control socket by
// which other processes reach it.
package daemon
