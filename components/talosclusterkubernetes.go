// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package components

import (
	"fmt"
	"time"

	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"

	"github.com/talos-proxmox/talos-proxmox/internal/cluster"
	"github.com/talos-proxmox/talos-proxmox/internal/rollout"
	"github.com/talos-proxmox/talos-proxmox/internal/versions"
	"github.com/talos-proxmox/talos-proxmox/spec"
)

// kubernetes registers the version of Kubernetes that the cluster runs. When it changes the cluster is
// upgraded component by component, node by node. The configurations depend on it: they name the version
// too, are applied to all nodes at the same time, and then find it running. The nodes' versions of
// Talos depend on the configurations, so that both upgrades never run at the same time. A new cluster
// does not wait for it. An upgrade that fails keeps the old value in the state, so that the next run
// goes on; when the edit is taken back instead, the nodes are brought back.
func (c *TalosCluster) kubernetes(ctx *pulumi.Context, name string) (*pulumi.Stash, error) {
	run, err := registerHook(ctx, TalosClusterType, name, "kubernetes", c.upgradeKubernetes(ctx))
	if err != nil {
		return nil, err
	}
	refuse, err := registerPlanHook(ctx, TalosClusterType, name, "kubernetes-step", refuseKubernetesStep)
	if err != nil {
		return nil, err
	}

	created, err := registerHook(ctx, TalosClusterType, name, "created", func(*pulumi.ResourceHookArgs) error {
		c.fresh.Store(true)

		return nil
	})
	if err != nil {
		return nil, err
	}
	version := pulumi.String(spec.Or(c.config.Kubernetes.Version, ""))
	tried, err := attempt(ctx, name+"-kubernetes-edit", version, pulumi.Parent(c))
	if err != nil {
		return nil, err
	}

	hooks := &pulumi.ResourceHookBinding{
		BeforeCreate: []*pulumi.ResourceHook{created}, BeforeUpdate: []*pulumi.ResourceHook{refuse, run},
	}
	if spec.Or(c.config.Cluster.Adopted, false) {
		// Nobody knows what a cluster runs that was made elsewhere.
		hooks.BeforeCreate = []*pulumi.ResourceHook{created, run}
	}
	stash, err := pulumi.NewStash(ctx, name+"-kubernetes", &pulumi.StashArgs{
		Input: pulumi.StringMap{"edit": tried, "kubernetes": version},
	}, pulumi.Parent(c), pulumi.DependsOn([]pulumi.Resource{c.secrets.resource}), pulumi.ResourceHooks(hooks))
	if err != nil {
		return nil, fmt.Errorf("registering the Kubernetes version of cluster %q: %w", name, err)
	}

	return stash, nil
}

// upgradeKubernetes is the hook that brings the cluster to the version in its new input.
func (c *TalosCluster) upgradeKubernetes(ctx *pulumi.Context) pulumi.ResourceHookFunction {
	poll := cluster.DefaultPollOptions(duration(c.config.Lifecycle.UpgradeTimeout, 20*time.Minute))

	return func(args *pulumi.ResourceHookArgs) error {
		remote, err := c.secrets.access.openLiving(ctx.Context(), reportTo(ctx, args.URN))
		if err != nil {
			return err
		}
		// Members that leave do so later in the run.
		cluster := c.secrets.access.cluster
		cluster.Leaving = true

		return rollout.KubernetesUpgrade{
			Access: remote, Cluster: cluster, Gate: c.secrets.gate, Poll: poll, Report: reportTo(ctx, args.URN),
			Snapshots: c.snapshots(remote), Metrics: remote.Metrics,
		}.Run(ctx.Context(), spec.Or(c.config.Kubernetes.Version, ""))
	}
}

// refuseKubernetesStep refuses, in the preview already, a step that Kubernetes does not take.
func refuseKubernetesStep(args *pulumi.ResourceHookArgs) error {
	from, errFrom := versions.ParseKubernetes(stashedText(args.OldInputs, "kubernetes"))
	to, errTo := versions.ParseKubernetes(stashedText(args.NewInputs, "kubernetes"))
	if errFrom != nil || errTo != nil {
		return nil // the nodes themselves say what they run, at up
	}
	if err := versions.KubernetesStep(from, to); err != nil {
		return fmt.Errorf("kubernetes.version: %w", err)
	}

	return nil
}
