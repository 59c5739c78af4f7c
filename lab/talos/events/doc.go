// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

// Package events keeps what happens on a node: the stream of the Events API, and the state of its services.
package events
