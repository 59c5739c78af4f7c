// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package components

import (
	"fmt"
	"time"

	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"
	"github.com/pulumiverse/pulumi-talos/sdk/go/talos/machine"

	"github.com/talos-proxmox/talos-proxmox/internal/cluster"
	"github.com/talos-proxmox/talos-proxmox/internal/rollout"
	"github.com/talos-proxmox/talos-proxmox/internal/versions"
	"github.com/talos-proxmox/talos-proxmox/spec"
)

// upgrades registers what each node runs. When it changes the node is upgraded in place: control
// planes one after the other, then workers, as many at a time as may be unavailable. A node that fails
// keeps its old value in the state, so that the next run goes on there.
func (c *TalosCluster) upgrades(
	ctx *pulumi.Context, name string, args *TalosClusterArgs, applies map[string]*machine.ConfigurationApply,
	members pulumi.Resource,
) ([]pulumi.Resource, error) {
	var planes, workers []pulumi.Resource
	edits, err := c.imageEdits(ctx, name, args)
	if err != nil {
		return nil, err
	}
	lanes := spec.Or(c.config.Lifecycle.MaxUnavailable, 1)
	for _, n := range c.config.Nodes {
		after := []pulumi.Resource{applies[n.Name], members}
		if len(planes) > 0 {
			after = append(after, planes[len(planes)-1])
		}
		if !n.IsControlPlane() && len(workers) >= lanes {
			after = append(after, workers[len(workers)-lanes])
		}
		stash, err := c.upgrade(ctx, name, n, cluster.Image{
			Version: spec.Or(c.config.Talos.Version, ""), Schematic: args.checked.schematics[n.Name], Installer: args.checked.in.Installer[n.Name],
		}, edits[variantOf(n)], after)
		if err != nil {
			return nil, err
		}
		if n.IsControlPlane() {
			planes = append(planes, stash)
		} else {
			workers = append(workers, stash)
		}
	}

	return append(planes, workers...), nil
}

// imageEdits are, by image variant, values that are others after each edit of what its nodes run.
func (c *TalosCluster) imageEdits(ctx *pulumi.Context, name string, args *TalosClusterArgs) (map[string]pulumi.StringInput, error) {
	edits := map[string]pulumi.StringInput{}
	for _, n := range c.config.Nodes {
		variant := variantOf(n)
		if edits[variant] != nil {
			continue
		}
		wanted := pulumi.String(spec.Or(c.config.Talos.Version, "") + " " + args.checked.schematics[n.Name])
		edit, err := attempt(ctx, name+"-"+variant+"-image-edit", wanted, pulumi.Parent(c))
		if err != nil {
			return nil, err
		}
		edits[variant] = edit
	}

	return edits, nil
}

// variantOf is the image variant that a node boots.
func variantOf(n spec.NamedNode) string { return spec.Or(n.Node.Image, spec.DefaultImage) }

// upgrade registers what one node runs.
func (c *TalosCluster) upgrade(
	ctx *pulumi.Context, name string, n spec.NamedNode, image cluster.Image, edit pulumi.StringInput, after []pulumi.Resource,
) (*pulumi.Stash, error) {
	m := memberOf(n)
	run, err := registerHook(ctx, TalosClusterType, name, "upgrade/"+n.Name, func(args *pulumi.ResourceHookArgs) error {
		remote, err := c.secrets.access.openLiving(ctx.Context(), reportTo(ctx, args.URN))
		if err != nil {
			return err
		}

		return rollout.Upgrade{
			Access: remote, Cluster: c.secrets.access.cluster, Gate: c.secrets.gate, Drain: drainOf(c.config.Lifecycle),
			Poll:   cluster.DefaultPollOptions(duration(c.config.Lifecycle.UpgradeTimeout, 20*time.Minute)),
			Report: reportTo(ctx, args.URN), Snapshots: c.snapshots(remote),
		}.Run(ctx.Context(), m, image)
	})
	if err != nil {
		return nil, err
	}
	refuse, err := registerPlanHook(ctx, TalosClusterType, name, "step/"+n.Name, refuseTalosStep(n.Name))
	if err != nil {
		return nil, err
	}

	hooks := &pulumi.ResourceHookBinding{BeforeUpdate: []*pulumi.ResourceHook{refuse, run}}
	if spec.Or(c.config.Cluster.Adopted, false) {
		// Nobody knows what the nodes of a cluster run that was made elsewhere.
		hooks.BeforeCreate = []*pulumi.ResourceHook{run}
	}
	stash, err := pulumi.NewStash(ctx, name+"-"+n.Name+"-version", &pulumi.StashArgs{Input: pulumi.StringMap{
		"edit": edit, "schematic": pulumi.String(image.Schematic), "talos": pulumi.String(image.Version),
	}}, pulumi.Parent(c), pulumi.DependsOn(after), pulumi.ResourceHooks(hooks))
	if err != nil {
		return nil, fmt.Errorf("registering the version of node %q: %w", n.Name, err)
	}

	return stash, nil
}

// refuseTalosStep refuses, in the preview already, a step that Talos does not take.
func refuseTalosStep(node string) pulumi.ResourceHookFunction {
	return func(args *pulumi.ResourceHookArgs) error {
		from, errFrom := versions.ParseTalos(stashedText(args.OldInputs, "talos"))
		to, errTo := versions.ParseTalos(stashedText(args.NewInputs, "talos"))
		if errFrom != nil || errTo != nil {
			return nil // the node itself says what it runs, at up
		}
		if err := versions.TalosStep(from, to); err != nil {
			return fmt.Errorf("node %s: talos.version: %w", node, err)
		}

		return nil
	}
}

// stashedText is a text in a Stash's input; empty when it is not there.
func stashedText(inputs resource.PropertyMap, key resource.PropertyKey) string {
	input := inputs["input"]
	if !input.IsObject() || !input.ObjectValue()[key].IsString() {
		return ""
	}

	return input.ObjectValue()[key].StringValue()
}

// drainOf is how nodes are emptied.
func drainOf(l spec.Lifecycle) rollout.Drain {
	return rollout.Drain{
		Timeout: duration(l.DrainTimeout, 10*time.Minute), Force: spec.Or(l.DrainPolicy, "fail") == "force",
		Interval: 5 * time.Second,
	}
}
