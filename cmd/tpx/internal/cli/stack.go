// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/talos-proxmox/talos-proxmox/cmd/tpx/internal/adopt"
	"github.com/talos-proxmox/talos-proxmox/cmd/tpx/internal/charts"
	"github.com/talos-proxmox/talos-proxmox/cmd/tpx/internal/drift"
	"github.com/talos-proxmox/talos-proxmox/cmd/tpx/internal/images"
	"github.com/talos-proxmox/talos-proxmox/cmd/tpx/internal/pulumi"
	"github.com/talos-proxmox/talos-proxmox/cmd/tpx/internal/stackfile"
	"github.com/talos-proxmox/talos-proxmox/cmd/tpx/internal/state"
	"github.com/talos-proxmox/talos-proxmox/spec"
)

// stateFlags say where a stack's state is read, and which of its clusters is meant.
type stateFlags struct{ file, cluster string }

func (f *stateFlags) add(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.file, "state", "",
		"a file with the output of `pulumi stack export --show-secrets`, - for standard input; asks Pulumi when empty")
	cmd.Flags().StringVar(&f.cluster, "cluster", "", "the cluster, where the stack has several")
}

// clusters returns the clusters of the stack's state, those that are meant.
func (f *stateFlags) clusters(ctx context.Context, in io.Reader, stack pulumi.CLI) ([]state.Cluster, error) {
	exported, err := f.export(ctx, in, stack)
	if err != nil {
		return nil, err
	}
	all, err := state.Read(exported)
	if err != nil || f.cluster == "" {
		return all, err
	}
	var names []string
	for _, c := range all {
		if c.Name == f.cluster {
			return []state.Cluster{c}, nil
		}
		names = append(names, c.Name)
	}

	return nil, fmt.Errorf("the stack has no cluster %q: it has %s", f.cluster, strings.Join(names, ", "))
}

// one returns the one cluster that is meant.
func (f *stateFlags) one(ctx context.Context, in io.Reader, stack pulumi.CLI) (state.Cluster, error) {
	all, err := f.clusters(ctx, in, stack)
	if err != nil {
		return state.Cluster{}, err
	}
	if len(all) > 1 {
		var names []string
		for _, c := range all {
			names = append(names, c.Name)
		}

		return state.Cluster{}, fmt.Errorf("the stack has the clusters %s: name one with --cluster", strings.Join(names, ", "))
	}

	return all[0], nil
}

func (f *stateFlags) export(ctx context.Context, in io.Reader, stack pulumi.CLI) ([]byte, error) {
	switch f.file {
	case "":
		return stack.Run(ctx, "stack export", "--show-secrets")
	case "-":
		return io.ReadAll(in)
	default:
		return os.ReadFile(f.file)
	}
}

func driftCommand(w *where) *cobra.Command {
	f := &stateFlags{}
	cmd := w.onStack("drift", "Name what was changed by hand on nodes since the last up",
		"Names what was changed by hand on nodes since the last up, in what Pulumi's providers do not look at:\n"+
			"Talos versions, schematics, machine configurations, members of etcd, nodes of Kubernetes, disks added to VMs.",
		func(cmd *cobra.Command, _ pulumi.Project, stack pulumi.CLI) error {
			clusters, err := f.clusters(cmd.Context(), cmd.InOrStdin(), stack)
			if err != nil {
				return err
			}
			drifted, err := drift.Run(cmd.Context(), clusters, cmd.OutOrStdout())
			if err == nil && drifted {
				return errFound
			}

			return err
		})
	f.add(cmd)

	return cmd
}

func adoptCommand(w *where) *cobra.Command {
	return w.onStack("adopt", "Hand the VMs of a cluster that already runs to a stack",
		"Hands the VMs of a cluster that already runs to a stack whose state does not know them, so that the stack's\n"+
			"up takes them as they are. When one of them differs from the stack file, nothing is adopted.",
		func(cmd *cobra.Command, project pulumi.Project, stack pulumi.CLI) error {
			return adopt.Run(cmd.Context(), project, stack, cmd.OutOrStdout())
		})
}

func checkCommand(w *where) *cobra.Command {
	return w.onStack("check", "Check a stack file against every rule, without Pulumi's engine and without a network",
		"Tells everything that is wrong with a stack file, each problem with its path and line, as a preview would, and\n"+
			"has Talos's own validation look at each node's machine configuration. Exit code 1 says that something is wrong.",
		func(cmd *cobra.Command, project pulumi.Project, stack pulumi.CLI) error {
			nodes, err := stackfile.Check(cmd.Context(), project, stack)
			var wrong *spec.InvalidError
			switch {
			case errors.As(err, &wrong):
				fmt.Fprintln(cmd.OutOrStdout(), err)

				return errFound
			case err != nil:
				return err
			}
			fmt.Fprintf(cmd.OutOrStdout(), "stack %s: nothing is wrong with its %d nodes\n", stack.FileStack(), nodes)

			return nil
		})
}

func imagesCommand(w *where) *cobra.Command {
	var check bool
	cmd := w.onStack("images", "List every image and URL that a stack will ever pull",
		"Lists every image and URL that a stack will ever pull, and from where once its mirrors are applied.",
		func(cmd *cobra.Command, project pulumi.Project, stack pulumi.CLI) error {
			return images.Run(cmd.Context(), project, stack, check, cmd.OutOrStdout())
		})
	cmd.Flags().BoolVar(&check, "check", false, "fail when nodes or hosts pull from outside the stack's mirrors")

	return cmd
}

func chartsCommand(w *where) *cobra.Command {
	return &cobra.Command{
		Use: "charts [STACK...]", Short: "Fetch the charts of stacks and pin their digests in charts.lock.yaml",
		Long: "Fills the chart cache with what stacks need (all stacks that have a file, when none is named), and pins each\n" +
			"archive's digest in charts.lock.yaml where none is pinned yet.",
		ValidArgsFunction: w.completeStacks,
		RunE: func(cmd *cobra.Command, names []string) error {
			project, err := pulumi.FindProject(w.dir)
			if err != nil {
				return err
			}
			if w.stack != "" {
				names = append(names, w.stack)
			}

			return charts.Run(cmd.Context(), project, names, cmd.OutOrStdout())
		},
	}
}
