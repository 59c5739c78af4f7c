// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package talos

import (
	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"
	"github.com/pulumiverse/pulumi-talos/sdk/go/talos/machine"

	"github.com/talos-proxmox/talos-proxmox/components/internal/hook"
	"github.com/talos-proxmox/talos-proxmox/components/internal/stash"
	"github.com/talos-proxmox/talos-proxmox/internal/cluster"
	"github.com/talos-proxmox/talos-proxmox/internal/rollout"
)

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
				Access: remote, Cluster: b.Cluster, Poll: pollOptions(b.Config.Lifecycle.ApplyTimeout), Report: b.reporting(step),
			}.Run(b.Ctx.Context(), first)
			if err == nil {
				b.bootstrapped.set()
			}

			return err
		},
	}, pulumi.Parent(b.Parent), pulumi.DependsOn([]pulumi.Resource{applies[first.Name]}))
}
