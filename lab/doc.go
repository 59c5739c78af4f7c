// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

// Package lab runs a site without hardware for a Go test: Proxmox VE, the Image Factory, Talos and Kubernetes
// on loopback. The real Pulumi engine drives an unmodified program against it.
//
//	func TestMyProgram(t *testing.T) {
//		l := lab.Start(t)
//		stack, err := auto.UpsertStackInlineSource(t.Context(), "dev", "mine", program, l.Workspace()...)
//		…
//		_, err = stack.Up(t.Context())
//		…
//		// l.Status().VMs is what the program made, l.Trace() is how.
//	}
//
// A program with a Pulumi.yaml runs as a command: l.Pulumi(dir, "up", "--yes", "--stack", "dev").
//
// The tools come from `make tools` in a checkout of this repository, once per machine; LAB_BIN is the path of its
// bin directory.
package lab
