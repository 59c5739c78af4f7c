// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

// Package flux does the work of a cluster's Flux: beside each running pod of source-controller and
// kustomize-controller it runs the genuine controller as a process, with the pod's arguments and the
// rights of its service account. The pods themselves are run by the lab's kubelets, which run nothing.
package flux
