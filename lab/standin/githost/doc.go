// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

// Package githost stands in for the plugins that register deploy keys: of github and gitlab that one
// resource, and the plugin command, whose commands it runs. They call the APIs of the site's git hosts.
package githost
