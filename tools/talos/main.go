// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

// Command talos-nodes runs nodes of genuine Talos in namespaces of their own, until its standard input closes. The lab's
// answers are compared with theirs.
package main

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
)

const usage = `Usage:
  talos-nodes DIR NAME=ADDRESS...   run a node for each name and address of 10.0.0.0/24, until standard input closes

DIR holds machined, containerd, containerd-shim-runc-v2, runc, etcd, hyperkube, bridge, loopback and host-local. It needs root. Once the nodes are started it
prints the name of a socket: a connection there that begins with a line "ADDRESS:PORT" leads to that place in their network.
`

const (
	// The program starts itself anew for each stage; this variable says which one.
	stageVariable = "TALOS_NODES_STAGE"
	// guardVariable tells the site the process id of its guard, which namespaces hide.
	guardVariable = "TALOS_NODES_GUARD"
	// consoleVariable prints the nodes' consoles to standard error when it is set.
	consoleVariable = "TALOS_NODES_CONSOLE"
)

func main() {
	runtime.LockOSThread() // a child dies with the thread that started it, and namespaces are a thread's
	err := error(nil)
	switch name := filepath.Base(os.Args[0]); {
	case name == "runc":
		err = runc(os.Args)
	case name == "pause":
		err = pause()
	case name == "cni":
		err = cni()
	case name == "web":
		err = web()
	case os.Getenv(stageVariable) == "site":
		err = runSite(os.Args[1], os.Args[2:])
	case os.Getenv(stageVariable) == "node":
		err = becomeNode(os.Args[1], os.Args[2])
	case len(os.Args) < 3:
		fmt.Fprint(os.Stderr, usage)
		os.Exit(2)
	default:
		err = guard(os.Args[1:])
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "talos-nodes:", err)
		os.Exit(1)
	}
}
