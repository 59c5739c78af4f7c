// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package cluster

// BootsNextAnnotation holds the installer image that was installed on a node but not booted yet. Since 1.13
// Talos installs and reboots in two steps and does not report which image boots next: a run that is
// interrupted in between leaves a node that looks unchanged.
const BootsNextAnnotation = "talos-proxmox.dev/boots-next"

// LeavingAnnotation marks the Node of a machine that was asked to leave. It outlives an interrupted run: the
// machine leaves by itself, and nobody has to name it in lifecycle.force.
const LeavingAnnotation = "talos-proxmox.dev/leaving"

// DrainedAnnotation marks nodes that a run of this program cordoned.
const DrainedAnnotation = "talos-proxmox.dev/drained"

// RerunAnnotation holds, as JSON of a kubeapply.Rerun, the command that a day-0 Job runs when it is recreated.
const RerunAnnotation = "talos-proxmox.dev/again"
