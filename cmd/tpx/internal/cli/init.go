// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package cli

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/talos-proxmox/talos-proxmox/cmd/tpx/internal/newstack"
	"github.com/talos-proxmox/talos-proxmox/cmd/tpx/internal/pulumi"
)

func initCommand(w *where) *cobra.Command {
	var a newstack.Answers
	var yes bool
	cmd := w.onStack("init", "Ask a few questions and write a stack file that passes every rule",
		"Asks for what a first stack file needs and writes it. What a flag gives is not asked. It makes no stack and\n"+
			"touches no host.",
		func(cmd *cobra.Command, project pulumi.Project, stack pulumi.CLI) error {
			var in io.Reader
			if !yes {
				in = cmd.InOrStdin()
			}
			if err := a.Ask(stack.FileStack(), in, cmd.OutOrStdout()); err != nil {
				return err
			}
			path, err := newstack.Write(project, stack, a)
			if err != nil {
				return err
			}
			fmt.Fprintf(cmd.OutOrStdout(), "%s is written. Next:\n  pulumi stack init %s\n  export PROXMOX_VE_API_TOKEN=…\n"+
				"  tpx doctor %s --live\n  pulumi up --stack %s\n", path, stack.Stack, stack.Stack, stack.Stack)

			return nil
		})
	f := cmd.Flags()
	f.StringVar(&a.Name, "name", "", "name of the cluster")
	f.StringVar(&a.Endpoint, "endpoint", "", "Proxmox VE's API, https://<host>:8006")
	f.StringVar(&a.Version, "proxmox-version", "", "Proxmox VE's release, 8 or 9")
	f.StringVar(&a.Host, "host", "", "host that the nodes run on")
	f.StringVar(&a.Datastore, "datastore", "", "datastore for the nodes' disks")
	f.StringVar(&a.Bridge, "bridge", "", "bridge that the nodes are on")
	f.StringVar(&a.First, "address", "", "address of the first node, with prefix length")
	f.StringVar(&a.Gateway, "gateway", "", "gateway of that network")
	f.StringVar(&a.VIP, "vip", "", "address of the Kubernetes API")
	f.StringVar(&a.ControlPlanes, "control-planes", "", "how many control planes: 1, 3 or 5")
	f.StringVar(&a.Workers, "workers", "", "how many workers")
	f.StringVar(&a.VMID, "vm-id", "", "id of the first VM")
	f.StringVar(&a.Git, "git", "", "repository that Flux follows, by HTTPS and without credentials; none when empty")
	f.BoolVarP(&yes, "yes", "y", false, "ask nothing: take what is proposed")

	return cmd
}
