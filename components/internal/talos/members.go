// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package talos

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"

	"github.com/talos-proxmox/talos-proxmox/components/internal/hook"
	"github.com/talos-proxmox/talos-proxmox/components/internal/stash"
	"github.com/talos-proxmox/talos-proxmox/internal/cluster"
	"github.com/talos-proxmox/talos-proxmox/internal/rollout"
	"github.com/talos-proxmox/talos-proxmox/spec"
)

// memberState holds what the state remembers of a node of the cluster.
type memberState struct {
	Address  string `json:"address"`
	Hostname string `json:"hostname"`
	Role     string `json:"role"`
}

// registerMembers registers the nodes of the cluster, after those that join in the same run. When a node is
// missing that was there before, it is retired, before Pulumi deletes its VM at the end of the run. There is
// no hook on deletion: a plain destroy asks no node.
func registerMembers(b *Build, before []pulumi.Resource) (*pulumi.Stash, error) {
	nodes := map[string]memberState{}
	for _, n := range b.Config.Nodes {
		m := memberOf(n)
		nodes[m.Name] = memberState{Address: m.Address, Hostname: m.Hostname, Role: string(*n.Role)}
	}

	return stash.Remember(b.Ctx, b.Name+"-members", nodes, stash.On[map[string]memberState]{
		Create: func(step hook.Step, _ map[string]memberState) error { return retireUnremembered(b, step) },
		Plan:   func(_ hook.Step, was, now map[string]memberState) error { return refuseTakenAddress(was, now) },
		Update: func(step hook.Step, was, now map[string]memberState) error {
			leaving, renamed := leavingMembers(was, b.Cluster), renamedHosts(was, now)
			if len(leaving)+len(renamed) == 0 {
				return nil
			}
			remote, err := b.APIs.openLiving(b.Ctx.Context(), b.reporting(step), leaving...)
			if err != nil {
				return err
			}
			limit := pollOptions(b.Config.Lifecycle, b.Config.Lifecycle.ReadyTimeout)
			for _, hostname := range renamed {
				if err := rollout.DeleteNode(b.Ctx.Context(), remote, hostname, limit, b.reporting(step)); err != nil {
					return err
				}
			}
			if len(leaving) == 0 {
				return nil
			}

			return retire(b.Session, step, remote, b.Cluster, leaving)
		},
	}, pulumi.Parent(b.Parent), pulumi.DependsOn(before))
}

// retireUnremembered retires nodes whose configuration an earlier run applied, and which the stack file has no more,
// where that run failed before the members were remembered: they may be in etcd.
func retireUnremembered(b *Build, step hook.Step) error {
	state, err := stateOf(b.Ctx)
	if err != nil {
		return err
	}
	leaving := unremembered(state, b.Name, b.Cluster)
	if len(leaving) == 0 {
		return nil
	}
	checker, err := b.checker(step)
	if err != nil {
		return err
	}
	if serving, err := checker.Serving(b.Ctx.Context()); err != nil || !serving {
		return err
	}
	remote, err := b.APIs.openLiving(b.Ctx.Context(), step.Report, leaving...)
	if err != nil {
		return err
	}

	return retire(b.Session, step, remote, b.Cluster, leaving)
}

// unremembered returns the nodes that have a configuration in the state, and that the cluster has no more. Which of
// them is a control plane only etcd knows.
func unremembered(state map[string]stateResource, name string, now cluster.Cluster) []cluster.Member {
	var leaving []cluster.Member
	for _, urn := range slices.Sorted(maps.Keys(state)) {
		resource := state[urn]
		_, called, _ := strings.Cut(urn, configurationApplyType+"::")
		node, ours := strings.CutPrefix(called, name+"-")
		if !ours || resource.Type != configurationApplyType ||
			slices.ContainsFunc(now.Members, func(m cluster.Member) bool { return m.Name == node }) {
			continue
		}
		leaving = append(leaving, cluster.Member{Name: node, Hostname: node, Address: resource.Outputs.Node, ControlPlane: true})
	}

	return leaving
}

// retired returns text once all nodes that the stack file has no more were retired. Where a run leaves the members
// out it fails: else Pulumi would delete their VMs.
func retired(b *Build, members *pulumi.Stash, text string) pulumi.StringOutput {
	return stash.OutcomeOf[map[string]memberState](members).After(text, func(current map[string]memberState) error {
		if leaving := leavingMembers(current, b.Cluster); len(leaving) > 0 {
			return fmt.Errorf("%s: gone from the stack file, and not retired: nothing is deleted", namesOf(leaving))
		}

		return nil
	})
}

// refuseTakenAddress refuses a new node at the address of one that leaves: both machines would have it until the
// old one is gone, and the new configuration could reach the old one.
func refuseTakenAddress(was, now map[string]memberState) error {
	for _, name := range slices.Sorted(maps.Keys(now)) {
		if _, known := was[name]; known {
			continue
		}
		for _, other := range slices.Sorted(maps.Keys(was)) {
			_, stays := now[other]
			if !stays && was[other].Address == now[name].Address {
				return fmt.Errorf("nodes.%s: has the address %s of %s, which goes in the same run: two machines would have it; "+
					"remove %s and run up, then add %s; to have a node rebuilt, raise lifecycle.replace", name, now[name].Address, other, other, name)
			}
		}
	}

	return nil
}

// renamedHosts returns the names that nodes had in Kubernetes before their hostnames were edited.
func renamedHosts(was, now map[string]memberState) []string {
	var old []string
	for _, name := range slices.Sorted(maps.Keys(was)) {
		if node, stays := now[name]; stays && node.Hostname != was[name].Hostname {
			old = append(old, was[name].Hostname)
		}
	}

	return old
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
