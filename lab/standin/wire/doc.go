// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

// Package wire serves Pulumi providers on a port to which an engine attaches by
// PULUMI_DEBUG_PROVIDERS.
package wire
