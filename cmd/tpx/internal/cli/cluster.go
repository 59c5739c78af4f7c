// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/talos-proxmox/talos-proxmox/cmd/tpx/internal/access"
	"github.com/talos-proxmox/talos-proxmox/cmd/tpx/internal/etcd"
	"github.com/talos-proxmox/talos-proxmox/cmd/tpx/internal/pulumi"
	"github.com/talos-proxmox/talos-proxmox/cmd/tpx/internal/state"
	"github.com/talos-proxmox/talos-proxmox/cmd/tpx/internal/status"
)

func accessCommand(w *where) *cobra.Command {
	f, to := &stateFlags{}, access.Files{}
	var merge, force bool
	cmd := w.onStack("access", "Write a cluster's kubeconfig and talosconfig to files, or merge them into yours",
		"Writes a cluster's kubeconfig and talosconfig to files that only you may read. With --merge they are added to\n"+
			"the files that kubectl and talosctl read ($KUBECONFIG or ~/.kube/config, $TALOSCONFIG or ~/.talos/config).",
		func(cmd *cobra.Command, _ pulumi.Project, stack pulumi.CLI) error {
			c, err := f.one(cmd.Context(), cmd.InOrStdin(), stack)
			if err != nil {
				return err
			}
			if !merge {
				return access.Write(c, to, force, cmd.OutOrStdout())
			}
			into, err := ownFiles(cmd, to)
			if err != nil {
				return err
			}

			return access.Merge(c, into, force, cmd.OutOrStdout())
		})
	f.add(cmd)
	cmd.Flags().StringVar(&to.Kubeconfig, "kubeconfig", "kubeconfig", "where the kubeconfig goes; empty leaves it out")
	cmd.Flags().StringVar(&to.Talosconfig, "talosconfig", "talosconfig", "where the talosconfig goes; empty leaves it out")
	cmd.Flags().BoolVar(&merge, "merge", false, "add to files that may hold other clusters, and select this one")
	cmd.Flags().BoolVar(&force, "force", false, "write over what is there under the same name")

	return cmd
}

// ownFiles returns where credentials are merged: where flags say it, else what kubectl and talosctl read.
func ownFiles(cmd *cobra.Command, given access.Files) (access.Files, error) {
	home, err := os.UserHomeDir()
	if err != nil {
		return given, fmt.Errorf("finding your kubeconfig: %w", err)
	}
	if !cmd.Flags().Changed("kubeconfig") {
		first := filepath.SplitList(os.Getenv("KUBECONFIG"))
		given.Kubeconfig = filepath.Join(home, ".kube", "config")
		if len(first) > 0 {
			given.Kubeconfig = first[0]
		}
	}
	if !cmd.Flags().Changed("talosconfig") {
		given.Talosconfig = cmp.Or(os.Getenv("TALOSCONFIG"), filepath.Join(home, ".talos", "config"))
	}

	return given, nil
}

func statusCommand(w *where) *cobra.Command {
	f := &stateFlags{}
	var asJSON, watch bool
	var interval time.Duration
	cmd := w.onStack("status", "Show nodes, versions, members of etcd and when certificates end",
		"Asks the nodes themselves. Exit code 1 says that a node does not run, is not ready, or is no member of etcd.",
		func(cmd *cobra.Command, _ pulumi.Project, stack pulumi.CLI) error {
			clusters, err := f.clusters(cmd.Context(), cmd.InOrStdin(), stack)
			if err != nil {
				return err
			}
			for {
				healthy, err := printStatus(cmd.Context(), clusters, asJSON, watch, cmd.OutOrStdout())
				if err != nil {
					return err
				}
				if !watch && !healthy {
					return errFound
				}
				if !watch {
					return nil
				}
				select {
				case <-cmd.Context().Done():
					return nil
				case <-time.After(interval):
				}
			}
		})
	f.add(cmd)
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	cmd.Flags().BoolVarP(&watch, "watch", "w", false, "show it again and again, until interrupted")
	cmd.Flags().DurationVar(&interval, "interval", 5*time.Second, "how long to wait between two looks")

	return cmd
}

// clearScreen is what a terminal takes for an empty page.
const clearScreen = "\x1b[H\x1b[2J"

func printStatus(ctx context.Context, clusters []state.Cluster, asJSON, watch bool, out io.Writer) (bool, error) {
	healthy := true
	var reports []status.Report
	for _, c := range clusters {
		r, err := status.Collect(ctx, c)
		if err != nil {
			return false, err
		}
		healthy = healthy && r.Healthy()
		reports = append(reports, r)
	}
	if asJSON {
		return healthy, status.PrintJSON(out, reports)
	}
	if watch {
		fmt.Fprint(out, clearScreen)
	}
	for _, r := range reports {
		if err := r.Print(out, time.Now()); err != nil {
			return false, err
		}
	}

	return healthy, nil
}

func backupCommand(w *where) *cobra.Command {
	f := &stateFlags{}
	var output string
	cmd := w.onStack("backup", "Write a snapshot of a cluster's etcd to a file",
		"Writes a snapshot of a cluster's etcd to a file that only you may read: it holds every secret of the cluster.",
		func(cmd *cobra.Command, _ pulumi.Project, stack pulumi.CLI) error {
			c, err := f.one(cmd.Context(), cmd.InOrStdin(), stack)
			if err != nil {
				return err
			}

			return etcd.Backup(cmd.Context(), c, output, time.Now(), cmd.OutOrStdout())
		})
	f.add(cmd)
	cmd.Flags().StringVarP(&output, "output", "o", "", "the file; <cluster>-<time>.snapshot when empty")

	return cmd
}

func restoreCommand(w *where) *cobra.Command {
	f := &stateFlags{}
	var from etcd.From
	cmd := w.onStack("restore", "Start a cluster's etcd with a snapshot, where etcd is lost on every control plane",
		"Hands a snapshot to one control plane, which starts etcd with it. It is refused while any control plane has a\n"+
			"working etcd, or does not say that it has none. Have the lost machines replaced first; docs/lifecycle.md says how.",
		func(cmd *cobra.Command, _ pulumi.Project, stack pulumi.CLI) error {
			if from.Snapshot == "" {
				return errors.New("name the snapshot: --snapshot FILE")
			}
			c, err := f.one(cmd.Context(), cmd.InOrStdin(), stack)
			if err != nil {
				return err
			}

			return etcd.Restore(cmd.Context(), c, from, cmd.OutOrStdout())
		})
	f.add(cmd)
	cmd.Flags().StringVar(&from.Snapshot, "snapshot", "", "the `FILE` that tpx backup, an upgrade or a scheduled backup wrote")
	cmd.Flags().StringVar(&from.AgeKey, "age-key", "", "the `FILE` with the age key that opens it, where it is encrypted")
	cmd.Flags().StringVar(&from.Node, "node", "", "the control plane that starts, by name or address; the first when empty")
	cmd.Flags().StringSliceVar(&from.Lost, "lost", nil, "control planes whose machines are gone for good, which are not asked")

	return cmd
}
