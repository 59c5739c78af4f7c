// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

// Package talos is the Talos node that runs inside a virtual machine of the site.
//
// A node boots what is on its disk or CD by Talos's rules, waits in maintenance mode for a machine
// configuration, installs itself, joins etcd and Kubernetes, and answers the real Talos gRPC API
// with the PKI of the configuration that was applied to it. What a configuration may hold is
// decided by Talos's own machinery, so a node refuses what a real one refuses, in the same words.
//
// One [Nodes] holds every node of a site and the clusters that they form. What must survive a
// power cut is kept on the node's own disk, so a site that is started again goes on where it was.
package talos
