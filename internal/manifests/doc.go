// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

// Package manifests makes what a cluster gets at day 0: the pod network, CoreDNS, charts and
// further objects, as ordered YAML texts that Talos applies at bootstrap. Charts are rendered in
// process with Helm's own library, from archives in a cache, so that a plan needs no network.
package manifests
