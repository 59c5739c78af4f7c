// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

// Package node runs Talos inside a virtual machine of the site: it boots, installs, joins etcd and Kubernetes,
// upgrades, resets and goes, and publishes its resources.
package node
