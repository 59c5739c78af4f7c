// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

// Package gateway is the way into a site: an HTTP proxy on loopback whose every connection ends in
// the site's network. Clients need no more than HTTPS_PROXY; nothing leaves the machine.
//
// Names and ports that no machine of the site holds can be served by HTTP handlers, behind a
// certificate that the lab's authority issues for the name that was asked for.
package gateway
