// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package talos

import (
	"slices"

	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"
	"github.com/pulumiverse/pulumi-talos/sdk/go/talos/machine"

	"github.com/talos-proxmox/talos-proxmox/components/internal/hook"
	"github.com/talos-proxmox/talos-proxmox/components/internal/stash"
	"github.com/talos-proxmox/talos-proxmox/internal/cluster"
	"github.com/talos-proxmox/talos-proxmox/internal/health"
	"github.com/talos-proxmox/talos-proxmox/internal/rollout"
)

// creating reports whether this run makes the cluster, as the hook on its version of Kubernetes has seen: nothing
// that runs can be harmed, and each step waits only for what it needs. A run after an interrupted one creates nothing.
func (b *Build) creating() bool { return b.isNew.Load() && !b.adopted() }

// afterIfLiving returns the option of a resource that comes after others in a cluster that lives, and waits for none
// of them while the cluster is made. The engine remembers what it was told last, so that an order which a creation
// left out is back with the next run.
func (b *Build) afterIfLiving(others ...pulumi.Resource) pulumi.ResourceOption {
	if b.Ctx.DryRun() {
		return pulumi.DependsOn(append(slices.Clone(others), b.kubernetes))
	}
	// The hook has run when the version of Kubernetes is registered.
	after := b.kubernetes.ID().ApplyT(func(pulumi.ID) []pulumi.Resource {
		if b.creating() {
			return nil
		}

		return others
	}).(pulumi.ResourceArrayOutput)

	return pulumi.DependsOnInputs(after)
}

// startOf returns when something may be installed.
func startOf(b *Build, kubeconfig pulumi.StringOutput, fetched, ready pulumi.Resource) Start {
	// Without a pod network no node takes pods, and what brings one comes after the gate.
	early := !b.Cluster.SkipKubernetes
	first := b.afterIfLiving(ready)
	if !early {
		first = pulumi.DependsOn([]pulumi.Resource{ready})
	}

	return Start{
		Kubeconfig: kubeconfig,
		After:      pulumi.Composite(first, pulumi.DependsOn([]pulumi.Resource{fetched})),
		Await: func(step hook.Step) error {
			if !early || !b.creating() {
				return nil
			}
			remote, err := b.APIs.open(b.Ctx.Context())
			if err != nil {
				return err
			}

			limit := pollOptions(b.Config.Lifecycle, b.Config.Lifecycle.ReadyTimeout)

			return health.WaitSchedulable(b.Ctx.Context(), remote, b.Cluster, limit, step.Report)
		},
	}
}

// bootstrap starts etcd on the first control plane as soon as that node has its configuration. It happens
// once in a cluster's life: what is remembered never changes, so that nothing is started again elsewhere when
// that node goes. The provider's own resource is not used: after a run that was interrupted behind the
// request it asks again for ten minutes, and fails.
func bootstrap(b *Build, applies map[string]*machine.ConfigurationApply) (pulumi.Resource, error) {
	first := memberOf(b.Config.ControlPlanes()[0])

	return stash.Remember(b.Ctx, b.Name+bootstrapSuffix, "once", stash.On[string]{
		Create: func(step hook.Step, _ string) error {
			remote, err := b.APIs.open(b.Ctx.Context())
			if err != nil {
				return err
			}

			defer reapplyLostConfigs(b.Session, step, []cluster.Member{first})()

			err = rollout.Bootstrap{
				Access: remote, Cluster: b.Cluster, Poll: pollOptions(b.Config.Lifecycle, b.Config.Lifecycle.ApplyTimeout), Report: b.reporting(step),
			}.Run(b.Ctx.Context(), first)
			if err == nil {
				b.bootstrapped.set()
			}

			return err
		},
	}, pulumi.Parent(b.Parent), pulumi.DependsOn([]pulumi.Resource{applies[first.Name]}))
}
