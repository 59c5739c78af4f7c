// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package cluster

// bootsNextAnnotation is the image that was installed on a node, as long as the node has not come back with
// it. Since 1.13 Talos installs and reboots in two steps and does not say which image it boots next: a run
// that is interrupted in between leaves a node that looks as if nothing had happened to it.
const BootsNextAnnotation = "talos-proxmox.dev/boots-next"

// leavingAnnotation is on the Node of a machine that was asked to leave. It outlives a run that was
// interrupted: the machine goes by itself, and nobody has to say by force that it may be silent.
const LeavingAnnotation = "talos-proxmox.dev/leaving"

// drainedAnnotation marks nodes that are drained here, not by somebody else.
const DrainedAnnotation = "talos-proxmox.dev/drained"

// AgainAnnotation is how a day-0 Job says, as JSON of [Again], what it runs when it is made anew.
const RerunAnnotation = "talos-proxmox.dev/again"
