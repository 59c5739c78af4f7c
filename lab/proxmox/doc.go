// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

// Package proxmox serves the Proxmox VE HTTP API of a site: /api2/json as clients of Proxmox VE 8 use
// it. Requests are form-encoded, answers are {"data": …}, and what went wrong stands in the reason
// phrase of the status line, as there.
//
// The endpoint's name chooses the cluster (see [site.Site.Cluster]).
package proxmox
