// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package components

import (
	"fmt"
	"time"

	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"
	"github.com/pulumiverse/pulumi-talos/sdk/go/talos/machine"

	"github.com/talos-proxmox/talos-proxmox/internal/cluster"
	"github.com/talos-proxmox/talos-proxmox/internal/rollout"
)

// bootstrap starts etcd on the first control plane as soon as that node has its configuration. It is
// done once in a cluster's life: when that node goes, nothing is started again elsewhere, since what is
// kept never changes. The provider's own resource is not used: after a run that was interrupted behind
// the request it asks again for ten minutes, and fails.
func (c *TalosCluster) bootstrap(
	ctx *pulumi.Context, name string, applies map[string]*machine.ConfigurationApply,
) (*pulumi.Stash, error) {
	first := memberOf(c.config.ControlPlanes()[0])
	poll := cluster.DefaultPollOptions(duration(c.config.Lifecycle.ApplyTimeout, 10*time.Minute))
	run, err := registerHook(ctx, TalosClusterType, name, "bootstrap", func(args *pulumi.ResourceHookArgs) error {
		remote, err := c.secrets.access.open(ctx.Context())
		if err != nil {
			return err
		}

		defer c.mindForgotten(ctx, args.URN, []cluster.Member{first})()

		return rollout.Bootstrap{
			Access: remote, Cluster: c.secrets.access.cluster, Poll: poll, Report: reportTo(ctx, args.URN),
		}.Run(ctx.Context(), first)
	})
	if err != nil {
		return nil, err
	}
	stash, err := pulumi.NewStash(ctx, name+"-bootstrap", &pulumi.StashArgs{Input: pulumi.String("once")},
		pulumi.Parent(c), pulumi.DependsOn([]pulumi.Resource{applies[first.Name]}),
		pulumi.ResourceHooks(&pulumi.ResourceHookBinding{BeforeCreate: []*pulumi.ResourceHook{run}}))
	if err != nil {
		return nil, fmt.Errorf("registering the bootstrap of cluster %q: %w", name, err)
	}

	return stash, nil
}
