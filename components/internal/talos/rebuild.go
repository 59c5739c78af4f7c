// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package talos

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"

	"github.com/talos-proxmox/talos-proxmox/components/internal/hook"
	"github.com/talos-proxmox/talos-proxmox/components/internal/node"
	"github.com/talos-proxmox/talos-proxmox/components/internal/stash"
	"github.com/talos-proxmox/talos-proxmox/components/internal/vmargs"
	"github.com/talos-proxmox/talos-proxmox/internal/cluster"
	"github.com/talos-proxmox/talos-proxmox/internal/rollout"
	"github.com/talos-proxmox/talos-proxmox/internal/vm"
	"github.com/talos-proxmox/talos-proxmox/spec"
)

// RememberMachines registers which VMs the nodes have; the VMs depend on it. When an edit replaces one, its
// node is drained, leaves etcd and its Node is deleted before the VM goes. An edit that would replace more at
// a time than the cluster can spare, or its only control plane, is refused at preview. A VM that Pulumi is
// told to replace by force is not seen here.
func RememberMachines(s *Session, parent, secrets pulumi.Resource) (*node.Record, error) {
	machines := node.Machines{}
	for _, n := range s.Config.Nodes {
		machines[n.Name] = node.MachineOf(
			vmargs.Node{Cluster: s.Config.Cluster, Node: n, Image: s.Config.Image(n)}, s.Config.Lifecycle)
	}

	return node.Remember(s.Ctx, s.Name+"-machines", machines, s.Config.Lifecycle.AllowReplace, stash.On[node.Machines]{
		Plan: func(_ hook.Step, was, now node.Machines) error {
			leaving, planes := replacedMachines(was, now)

			return refuseRebuild(leaving, planes, *s.Config.Lifecycle.MaxUnavailable)
		},
		Update: func(step hook.Step, was, now node.Machines) error {
			leaving, _ := replacedMachines(was, now)

			return retireReplaced(s, step, leaving)
		},
	}, pulumi.Parent(parent), pulumi.DependsOn([]pulumi.Resource{secrets}),
		pulumi.HideDiffs([]string{"input"})) // the VM itself shows its edit
}

// retireReplaced takes nodes out of the cluster whose VMs are replaced.
func retireReplaced(s *Session, step hook.Step, leaving []cluster.Member) error {
	if len(leaving) == 0 {
		return nil
	}
	checker, err := s.checker(step)
	if err != nil {
		return err
	}
	serving, err := checker.Serving(s.Ctx.Context())
	if err != nil {
		return err
	}
	if !serving {
		return fmt.Errorf("no control plane of cluster %q serves etcd, so that %s cannot leave it\n  when its machine is to go "+
			"as it is: undo this edit and name it: pulumi up --replace <URN of its VM>", checker.Cluster.Name, namesOf(leaving))
	}
	checker.Cluster.Members = slices.DeleteFunc(slices.Clone(checker.Cluster.Members), func(m cluster.Member) bool {
		return slices.ContainsFunc(leaving, func(l cluster.Member) bool { return l.Name == m.Name })
	})

	if err := retire(s, step, checker.Access, checker.Cluster, leaving); err != nil {
		return fmt.Errorf("%w\n  when another node waits for its configuration, which comes after this edit: undo the edit of %s, "+
			"run pulumi up, and make it again", err, namesOf(leaving))
	}

	return nil
}

// retire takes members out of the cluster: drained, out of etcd, their Nodes deleted.
func retire(
	s *Session, step hook.Step, access cluster.Access, cluster cluster.Cluster, leaving []cluster.Member,
) error {
	l := s.Config.Lifecycle
	limit := pollOptions(l, l.ReadyTimeout)
	// Each member drains, leaves and is looked after; any of the three may take as long as is allowed.
	steps := 3 * (len(cluster.Members) + len(leaving))
	working, cancel := context.WithTimeout(s.Ctx.Context(), time.Duration(steps)*limit.Timeout)
	defer cancel()

	return rollout.Retire{
		Access: access, Cluster: cluster, Gate: s.Gate, Drain: drainOf(l),
		Poll: limit, Force: l.Force, Report: s.reporting(step),
	}.Run(working, leaving)
}

// replacedMachines returns the nodes whose VM an edit replaces, as they were, and how many control planes
// there were.
func replacedMachines(was, now node.Machines) ([]cluster.Member, int) {
	var leaving []cluster.Member
	planes := 0
	for _, name := range slices.Sorted(maps.Keys(was)) {
		old := was[name]
		plane := old.VM.Role == string(spec.ControlPlane)
		if plane {
			planes++
		}
		if still, ok := now[name]; ok && vm.Replaces(old.VM, still.VM) {
			leaving = append(leaving, cluster.Member{
				Name: name, Hostname: old.Hostname, Address: old.VM.Address, ControlPlane: plane,
			})
		}
	}

	return leaving, planes
}

// refuseRebuild refuses to replace more machines in one run than the cluster can spare.
func refuseRebuild(leaving []cluster.Member, planes, workers int) error {
	going := slices.DeleteFunc(slices.Clone(leaving), func(m cluster.Member) bool { return !m.ControlPlane })
	switch {
	case len(going) == 0 && len(leaving) <= workers, len(leaving) == 1 && planes > 1:
		return nil
	case len(going) == 1 && planes == 1:
		return fmt.Errorf("%s is the cluster's only control plane: with its machine goes all that the cluster holds; "+
			"add control planes first, or restore the cluster from a snapshot on the new machine, as docs/lifecycle.md says",
			namesOf(going))
	case len(going) > 0:
		return fmt.Errorf("the machines of %s would be replaced in one run: a control plane goes alone; "+
			"replace %s, run up, then go on with the next", namesOf(leaving), going[0].Name)
	default:
		return fmt.Errorf("the machines of %s would be replaced in one run: lifecycle.maxUnavailable lets go of %d; "+
			"replace some, run up, then go on with the next", namesOf(leaving), workers)
	}
}

// namesOf returns the members' names, joined by commas.
func namesOf(members []cluster.Member) string {
	names := make([]string, 0, len(members))
	for _, m := range members {
		names = append(names, m.Name)
	}

	return strings.Join(names, ", ")
}
