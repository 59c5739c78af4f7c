// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package talos

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"
	"github.com/pulumiverse/pulumi-talos/sdk/go/talos/machine"

	"github.com/talos-proxmox/talos-proxmox/components/internal/hook"
	"github.com/talos-proxmox/talos-proxmox/components/internal/stash"
	"github.com/talos-proxmox/talos-proxmox/internal/cluster"
	"github.com/talos-proxmox/talos-proxmox/internal/health"
	"github.com/talos-proxmox/talos-proxmox/internal/rollout"
	"github.com/talos-proxmox/talos-proxmox/internal/talosapi"
	"github.com/talos-proxmox/talos-proxmox/spec"
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

// madeBefore holds the machine of each node as the stack's last state has it, empty where that does not say; nil where there
// was no cluster.
type madeBefore map[string]string

// knownMachines reads which machines the nodes have, before any of them is made anew. A preview does not ask.
func knownMachines(b *Build) madeBefore {
	if b.Ctx.DryRun() {
		return nil
	}
	state, err := stateOf(b.Ctx)
	if err != nil {
		return nil // the order holds for all
	}
	known, lives := madeBefore{}, b.adopted()
	for urn, r := range state {
		_, name, _ := strings.Cut(urn, r.Type+"::")
		lives = lives || r.Type == stashToken && name == b.Name+bootstrapSuffix
		if node, ours := strings.CutPrefix(name, b.Name+"-"); ours && r.Type == nodeToken {
			known[node] = r.Outputs.MachineID
		}
	}
	if !lives || len(known) == 0 {
		return nil
	}

	return known
}

// nodeToken names the type of the component that has a node's VM.
const nodeToken = "talos-proxmox:components:ProxmoxNode"

// maintenanceLimit bounds the look at whether a node waits for its first configuration.
const maintenanceLimit = 3 * time.Second

// after returns the option of a node's configuration that comes after those of other nodes, unless the machine is made in this
// run, or waits for its first configuration: nothing runs there that a configuration could harm, and what takes down one of
// the others, before its configuration, waits until this node is well.
func (k madeBefore) after(b *Build, n spec.NamedNode, others []pulumi.Resource) pulumi.ResourceOption {
	id := b.MachineIDs[n.Name]
	if k == nil || id == nil || len(others) == 0 {
		return b.afterIfLiving(others...)
	}
	after := pulumi.All(b.kubernetes.ID(), id).ApplyT(func(v []any) []pulumi.Resource {
		now, _ := v[1].(string)
		if b.creating() || k.isAnew(n.Name, now) || waitsForConfiguration(b, n) {
			return nil
		}

		return others
	}).(pulumi.ResourceArrayOutput)

	return pulumi.DependsOnInputs(after)
}

// isAnew reports whether a node's machine is another than the state has. Where that does not tell, it is not.
func (k madeBefore) isAnew(node, now string) bool {
	was, known := k[node]

	return now != "" && (!known || was != "" && was != now)
}

// waitsForConfiguration reports whether a node says that it has no configuration yet, as after a run that ended in between.
func waitsForConfiguration(b *Build, n spec.NamedNode) bool {
	calling, cancel := context.WithTimeout(b.Ctx.Context(), maintenanceLimit)
	defer cancel()

	return talosapi.InMaintenance(calling, n.Address().String()) == nil
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
