// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

// Package image turns what a user says about a Talos image into what the Image Factory calls it: the
// schematic and its id (computed here, without the network), the addresses of ISO, disk image and
// installer, and the name of the file on a Proxmox datastore.
package image
