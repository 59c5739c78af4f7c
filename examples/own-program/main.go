// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

// An own program: two small clusters that follow a repository, with settings written in Go.
package main

import (
	"fmt"

	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"

	"github.com/talos-proxmox/talos-proxmox/components"
)

func main() {
	pulumi.Run(func(ctx *pulumi.Context) error {
		for i, name := range []string{"east", "west"} {
			cluster, err := components.NewCluster(ctx, name, &components.ClusterArgs{Config: describe(name, i)})
			if err != nil {
				return fmt.Errorf("cluster %q: %w", name, err)
			}
			ctx.Export(name+"Endpoint", cluster.Endpoint)
			ctx.Export(name+"Kubeconfig", cluster.Kubeconfig) // a secret
		}

		return nil
	})
}
