// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package talos

import (
	"maps"
	"slices"

	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"

	"github.com/talos-proxmox/talos-proxmox/components/internal/hook"
	"github.com/talos-proxmox/talos-proxmox/components/internal/stash"
	"github.com/talos-proxmox/talos-proxmox/internal/cluster"
	"github.com/talos-proxmox/talos-proxmox/spec"
)

// memberState is what the state remembers of a node of the cluster.
type memberState struct {
	Address  string `json:"address"`
	Hostname string `json:"hostname"`
	Role     string `json:"role"`
}

// registerMembers registers the nodes of the cluster, after those that join in the same run. When a node is
// missing that was there before, it is retired, before Pulumi deletes its VM at the end of the run. There is
// no hook on deletion: a plain destroy asks nobody.
func registerMembers(b *Build, before []pulumi.Resource) (pulumi.Resource, error) {
	nodes := map[string]memberState{}
	for _, n := range b.Config.Nodes {
		m := memberOf(n)
		nodes[m.Name] = memberState{Address: m.Address, Hostname: m.Hostname, Role: string(*n.Role)}
	}

	return stash.Remember(b.Ctx, b.Name+"-members", nodes, stash.On[map[string]memberState]{
		Update: func(step hook.Step, was, _ map[string]memberState) error {
			leaving := leavingMembers(was, b.Cluster)
			if len(leaving) == 0 {
				return nil
			}
			remote, err := b.APIs.openLiving(b.Ctx.Context(), step.Report, leaving...)
			if err != nil {
				return err
			}

			return retire(b.Session, step, remote, b.Cluster, leaving)
		},
	}, pulumi.Parent(b.Parent), pulumi.DependsOn(before))
}

// leavingMembers returns those of the old members that the cluster has no more.
func leavingMembers(was map[string]memberState, now cluster.Cluster) []cluster.Member {
	var leaving []cluster.Member
	for _, name := range slices.Sorted(maps.Keys(was)) {
		if slices.ContainsFunc(now.Members, func(m cluster.Member) bool { return m.Name == name }) {
			continue
		}
		leaving = append(leaving, cluster.Member{
			Name: name, Hostname: was[name].Hostname, Address: was[name].Address,
			ControlPlane: was[name].Role == string(spec.ControlPlane),
		})
	}

	return leaving
}
