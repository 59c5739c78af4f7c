// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package components

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"

	"github.com/talos-proxmox/talos-proxmox/internal/cluster"
	"github.com/talos-proxmox/talos-proxmox/internal/rollout"
	"github.com/talos-proxmox/talos-proxmox/spec"
)

// members registers who belongs to the cluster, after the nodes that join in the same run. When a node
// is missing that was there before, it is retired, before Pulumi deletes its machine at the end of the
// run. There is no hook on deletion: a plain destroy asks nobody.
func (c *TalosCluster) members(ctx *pulumi.Context, name string, before []pulumi.Resource) (*pulumi.Stash, error) {
	retire, err := registerHook(ctx, TalosClusterType, name, "retire", c.retire(ctx))
	if err != nil {
		return nil, err
	}
	nodes := pulumi.Map{}
	for _, n := range c.config.Nodes {
		m := memberOf(n)
		nodes[m.Name] = pulumi.StringMap{
			"address": pulumi.String(m.Address), "hostname": pulumi.String(m.Hostname),
			"role": pulumi.String(string(spec.Or(n.Role, spec.Worker))),
		}
	}
	stash, err := pulumi.NewStash(ctx, name+"-members", &pulumi.StashArgs{Input: nodes},
		pulumi.Parent(c), pulumi.DependsOn(before),
		pulumi.ResourceHooks(&pulumi.ResourceHookBinding{BeforeUpdate: []*pulumi.ResourceHook{retire}}))
	if err != nil {
		return nil, fmt.Errorf("registering the members of cluster %q: %w", name, err)
	}

	return stash, nil
}

// retire is the hook that takes nodes out that were members and are none any more.
func (c *TalosCluster) retire(ctx *pulumi.Context) pulumi.ResourceHookFunction {
	poll := cluster.DefaultPollOptions(duration(c.config.Lifecycle.ReadyTimeout, 15*time.Minute))

	return func(args *pulumi.ResourceHookArgs) error {
		leaving := leavingMembers(args.OldInputs, c.secrets.access.cluster)
		if len(leaving) == 0 {
			return nil
		}
		remote, err := c.secrets.access.openLiving(ctx.Context(), reportTo(ctx, args.URN), leaving...)
		if err != nil {
			return err
		}
		nodes := len(c.secrets.access.cluster.Members) + len(leaving)
		working, cancel := context.WithTimeout(ctx.Context(), time.Duration(nodes)*3*poll.Timeout)
		defer cancel()

		return rollout.Retire{
			Access: remote, Cluster: c.secrets.access.cluster, Gate: c.secrets.gate, Drain: drainOf(c.config.Lifecycle),
			Poll: poll, Force: c.config.Lifecycle.Force, Report: reportTo(ctx, args.URN),
		}.Run(working, leaving)
	}
}

// leavingMembers are those of the old members that the cluster has no more.
func leavingMembers(was resource.PropertyMap, now cluster.Cluster) []cluster.Member {
	input := was["input"]
	if !input.IsObject() {
		return nil
	}
	old := input.ObjectValue()
	var leaving []cluster.Member
	for _, key := range slices.Sorted(maps.Keys(old)) {
		name := string(key)
		if !old[key].IsObject() || slices.ContainsFunc(now.Members, func(m cluster.Member) bool { return m.Name == name }) {
			continue
		}
		text := func(field resource.PropertyKey) string {
			if v := old[key].ObjectValue()[field]; v.IsString() {
				return v.StringValue()
			}

			return ""
		}
		leaving = append(leaving, cluster.Member{
			Name: name, Hostname: text("hostname"), Address: text("address"),
			ControlPlane: text("role") == string(spec.ControlPlane),
		})
	}

	return leaving
}
