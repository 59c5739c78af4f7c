// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

// One typed stack file to a Talos cluster on Proxmox VE that git manages.
package main

import (
	"fmt"
	"os"

	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"

	"github.com/talos-proxmox/talos-proxmox/components"
	"github.com/talos-proxmox/talos-proxmox/internal/engine"
	"github.com/talos-proxmox/talos-proxmox/stack"
)

func main() {
	s, err := load()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	engine.ExitWhenGone()
	pulumi.Run(func(ctx *pulumi.Context) error { return run(ctx, s, components.ProjectCharts(projectDir())) })
}

// run registers the cluster and exports what people need of it.
func run(ctx *pulumi.Context, s *stack.Stack, charts components.ChartCache) error {
	cluster, err := components.NewCluster(ctx, "cluster", &components.ClusterArgs{
		Config: s.Config, Directory: projectDir(), Charts: &charts, SecretValues: s.SecureValues,
	})
	if err != nil {
		return s.Locate(err) // problems that Talos and the charts find get their lines too
	}
	export(ctx, s.Config, cluster)

	return nil
}
