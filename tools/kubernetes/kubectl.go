// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package main

import (
	"os"

	_ "k8s.io/client-go/plugin/pkg/client/auth" // logins that a user's kubeconfig may name
	"k8s.io/component-base/cli"
	"k8s.io/kubectl/pkg/cmd"
	"k8s.io/kubectl/pkg/cmd/util"
)

// kubectl runs kubectl with args, its own name first, and exits when it fails.
func kubectl(args []string) {
	os.Args = args // cobra and the plugin handler read it

	if err := cli.RunNoErrOutput(cmd.NewDefaultKubectlCommand()); err != nil {
		util.CheckErr(err)
	}
}
