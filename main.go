// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

// One typed stack file to a Talos cluster on Proxmox VE that git manages.
package main

import (
	"errors"
	"fmt"
	"os"

	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"

	"github.com/talos-proxmox/talos-proxmox/components"
	"github.com/talos-proxmox/talos-proxmox/stack"
)

func main() {
	s, err := load()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	endWithEngine()
	pulumi.Run(func(ctx *pulumi.Context) error { return run(ctx, s, components.ProjectCharts(projectDir())) })
}

// run composes the cluster: images, machines, Talos, GitOps.
func run(ctx *pulumi.Context, s *stack.Stack, charts components.ChartCache) error {
	cfg, name := s.Config, *s.Cluster.Name
	if err := components.KeepSecure(ctx, s.SecureValues); err != nil {
		return err
	}
	withGitOps, err := components.AddGitOpsDayZero(cfg)
	if err != nil {
		return err
	}
	talos := &components.TalosClusterArgs{Config: withGitOps, Charts: charts, ReadFile: readFile}
	err = errors.Join(talos.Check(ctx.Context(), name), components.CheckGitOps(ctx.Context(), cfg, charts))
	if err != nil {
		return err
	}

	providers, err := registerProviders(ctx, cfg)
	if err != nil {
		return err
	}
	images, err := registerImages(ctx, cfg, providers)
	if err != nil {
		return err
	}
	talos.Secrets, err = components.NewTalosSecrets(ctx, name, cfg, providers.proxmoxAndTalos)
	if err != nil {
		return err
	}
	nodes, err := registerNodes(ctx, cfg, images, talos.Secrets, providers)
	if err != nil {
		return err
	}
	talos.Machines = machinesOf(nodes)
	cluster, err := components.NewTalosCluster(ctx, name, talos, providers.proxmoxAndTalos)
	if err != nil {
		return err
	}
	git, err := handToGit(ctx, cfg, cluster, charts)
	if err != nil {
		return err
	}

	export(ctx, cfg, cluster, git)

	return nil
}
