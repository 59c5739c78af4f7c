// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

// Command lab-kubernetes is the Kubernetes of a lab cluster in one binary: etcd, API server,
// controller manager and scheduler in one process, and kubectl.
package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"k8s.io/component-base/version"
)

const usage = `Usage:
  lab-kubernetes control-plane --config FILE   run a cluster's control plane until stdin closes
  lab-kubernetes kubectl ARGS...               kubectl, also when started under that name
  lab-kubernetes version                       the Kubernetes version it was built from
`

func main() {
	if name := filepath.Base(os.Args[0]); strings.TrimSuffix(name, ".exe") == "kubectl" {
		kubectl(os.Args)

		return
	}

	if len(os.Args) < 2 {
		fmt.Fprint(os.Stderr, usage)
		os.Exit(2)
	}

	switch os.Args[1] {
	case "kubectl":
		kubectl(os.Args[1:])
	case "control-plane":
		if err := controlPlane(os.Args[2:]); err != nil {
			fmt.Fprintln(os.Stderr, "lab-kubernetes:", err)
			os.Exit(1)
		}
	case "version":
		fmt.Println(version.Get().GitVersion)
	default:
		fmt.Fprintf(os.Stderr, "lab-kubernetes: unknown command %q\n%s", os.Args[1], usage)
		os.Exit(2)
	}
}
