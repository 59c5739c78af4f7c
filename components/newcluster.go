// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package components

import (
	"fmt"

	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"

	"github.com/talos-proxmox/talos-proxmox/components/internal/secrettransform"
)

// NewCluster registers a cluster. Its name must not change, while the name in Config is what is remembered:
// another one is refused, since every VM is named after it.
func NewCluster(ctx *pulumi.Context, name string, args *ClusterArgs, opts ...pulumi.ResourceOption) (*Cluster, error) {
	if args == nil {
		return nil, errNoArgs("cluster", name)
	}
	if err := checkEngine(ctx); err != nil {
		return nil, fmt.Errorf("cluster %q: %w", name, err)
	}
	cfg := args.config(name)
	checked, err := args.check(ctx.Context(), cfg)
	if err != nil {
		return nil, err
	}
	if err := secrettransform.Register(ctx, args.SecretValues); err != nil {
		return nil, fmt.Errorf("cluster %q: %w", name, err)
	}
	given, err := pulumi.NewResourceOptions(opts...)
	if err != nil {
		return nil, fmt.Errorf("cluster %q: %w", name, err)
	}

	c := &Cluster{Nodes: map[string]*ProxmoxNode{}}
	if err := ctx.RegisterComponentResource(ClusterType, name, c, opts...); err != nil {
		return nil, fmt.Errorf("registering cluster %q: %w", name, err)
	}
	b := &clusterBuild{ctx: ctx, name: name, args: args, cfg: cfg, cluster: c}
	if err := b.register(given, checked); err != nil {
		return nil, err
	}

	return c, ctx.RegisterResourceOutputs(c, pulumi.Map{
		"kubeconfig": c.Kubeconfig, "talosconfig": c.Talosconfig, "endpoint": c.Endpoint,
		"deployKey": c.DeployKey, "ageRecipient": c.AgeRecipient,
	})
}
