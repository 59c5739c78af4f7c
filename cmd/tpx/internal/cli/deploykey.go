// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package cli

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/talos-proxmox/talos-proxmox/cmd/tpx/internal/deploykey"
)

// gitHostTimeout bounds what the git host is asked.
const gitHostTimeout = time.Minute

// deployKeyCommand returns what Pulumi runs for a key at Gitea or Forgejo; people have no use for it.
func deployKeyCommand() *cobra.Command {
	group := &cobra.Command{
		Use: "deploy-key", Hidden: true, Short: "Register a deploy key at Gitea or Forgejo, or remove it; Pulumi runs this",
	}
	group.AddCommand(
		withKey("add", "Register the key, read-only, and print its number", func(cmd *cobra.Command, ctx context.Context, k deploykey.Key) error {
			id, err := k.Add(ctx)
			if err == nil {
				fmt.Fprintln(cmd.OutOrStdout(), id)
			}

			return err
		}),
		withKey("remove", "Remove the key", func(_ *cobra.Command, ctx context.Context, k deploykey.Key) error { return k.Remove(ctx) }),
	)

	return group
}

func withKey(use, short string, run func(*cobra.Command, context.Context, deploykey.Key) error) *cobra.Command {
	return &cobra.Command{Use: use, Short: short, Args: cobra.NoArgs, RunE: func(cmd *cobra.Command, _ []string) error {
		k, err := deploykey.FromEnvironment(os.Getenv)
		if err != nil {
			return err
		}
		ctx, cancel := context.WithTimeout(cmd.Context(), gitHostTimeout)
		defer cancel()

		return run(cmd, ctx, k)
	}}
}
