// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package components

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"

	"github.com/talos-proxmox/talos-proxmox/internal/cluster"
	"github.com/talos-proxmox/talos-proxmox/internal/rollout"
	"github.com/talos-proxmox/talos-proxmox/internal/vm"
	"github.com/talos-proxmox/talos-proxmox/spec"
)

// machineState is what the state knows of a node's machine: enough to see that an edit replaces it, and
// to have the node leave before.
type machineState struct {
	Hostname string      `json:"hostname"`
	Machine  vm.Identity `json:"machine"`
}

// GuardRebuilds registers which machines the nodes have. Machines must depend on the result: when an edit
// replaces one, its node is drained, leaves etcd and its Node is deleted before the machine goes. An
// edit that would replace more at a time than the cluster can spare, or its only control plane, is
// refused at preview. A machine that Pulumi is told to replace by force is not seen here.
func (s *TalosSecrets) GuardRebuilds(ctx *pulumi.Context) (pulumi.Resource, error) {
	refuse, err := registerPlanHook(ctx, TalosSecretsType, s.name, "refuse-rebuild", func(args *pulumi.ResourceHookArgs) error {
		leaving, planes, err := replacedMachines(args.OldInputs, args.NewInputs)
		if err != nil {
			return err
		}

		return refuseRebuild(leaving, planes, spec.Or(s.config.Lifecycle.MaxUnavailable, 1))
	})
	if err != nil {
		return nil, err
	}
	retire, err := registerHook(ctx, TalosSecretsType, s.name, "rebuild", s.retireReplaced(ctx))
	if err != nil {
		return nil, err
	}

	nodes := map[string]any{}
	for _, n := range s.config.Nodes {
		id := vm.IdentityOf(n, s.config.Image(n), s.config.Lifecycle.Replace[n.Name]).Replaced()
		plain, err := plainValue(machineState{Hostname: spec.Or(n.Hostname, n.Name), Machine: id})
		if err != nil {
			return nil, fmt.Errorf("recording the machine of node %q: %w", n.Name, err)
		}
		nodes[n.Name] = plain
	}
	stash, err := pulumi.NewStash(ctx, s.name+"-machines", &pulumi.StashArgs{Input: pulumi.ToOutput(nodes)},
		pulumi.Parent(s), pulumi.DependsOn([]pulumi.Resource{s.resource}),
		pulumi.ResourceHooks(&pulumi.ResourceHookBinding{BeforeUpdate: []*pulumi.ResourceHook{refuse, retire}}))
	if err != nil {
		return nil, fmt.Errorf("registering the machines of cluster %q: %w", s.name, err)
	}

	return stash, nil
}

// retireReplaced is the hook that takes nodes out of the cluster whose machines are replaced.
func (s *TalosSecrets) retireReplaced(ctx *pulumi.Context) pulumi.ResourceHookFunction {
	return func(args *pulumi.ResourceHookArgs) error {
		leaving, _, err := replacedMachines(args.OldInputs, args.NewInputs)
		if err != nil || len(leaving) == 0 {
			return err
		}
		look, err := s.look(ctx, args.URN)
		if err != nil {
			return err
		}
		if !look.Lives(ctx.Context()) {
			return fmt.Errorf("no control plane of cluster %q serves etcd, so that %s cannot leave it\n  when its machine is to go "+
				"as it is: undo this edit and name it: pulumi up --replace <URN of its VM>", look.Cluster.Name, namesOf(leaving))
		}
		look.Cluster.Members = slices.DeleteFunc(slices.Clone(look.Cluster.Members), func(m cluster.Member) bool {
			return slices.ContainsFunc(leaving, func(l cluster.Member) bool { return l.Name == m.Name })
		})
		working, cancel := context.WithTimeout(ctx.Context(),
			time.Duration(len(look.Cluster.Members)+len(leaving))*3*look.Poll.Timeout)
		defer cancel()

		return rollout.Retire{
			Access: look.Access, Cluster: look.Cluster, Gate: s.gate, Drain: drainOf(s.config.Lifecycle),
			Poll: look.Poll, Force: s.config.Lifecycle.Force, Report: look.Report,
		}.Run(working, leaving)
	}
}

// replacedMachines are the nodes whose machine an edit replaces, as they were, and how many control
// planes there were.
func replacedMachines(was, now resource.PropertyMap) ([]cluster.Member, int, error) {
	before, err := machineStates(was)
	if err != nil {
		return nil, 0, err
	}
	after, err := machineStates(now)
	if err != nil {
		return nil, 0, err
	}
	var leaving []cluster.Member
	planes := 0
	for _, name := range slices.Sorted(maps.Keys(before)) {
		old := before[name]
		plane := old.Machine.Role == string(spec.ControlPlane)
		if plane {
			planes++
		}
		if still, ok := after[name]; ok && vm.Replaces(old.Machine, still.Machine) {
			leaving = append(leaving, cluster.Member{
				Name: name, Hostname: old.Hostname, Address: old.Machine.Address, ControlPlane: plane,
			})
		}
	}

	return leaving, planes, nil
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

func namesOf(members []cluster.Member) string {
	names := make([]string, 0, len(members))
	for _, m := range members {
		names = append(names, m.Name)
	}

	return strings.Join(names, ", ")
}

// machineStates are the machines in the inputs of their Stash.
func machineStates(inputs resource.PropertyMap) (map[string]machineState, error) {
	states := map[string]machineState{}
	text, err := json.Marshal(inputs["input"].Mappable())
	if err == nil {
		err = json.Unmarshal(text, &states)
	}
	if err != nil {
		return nil, fmt.Errorf("reading which machines the nodes had: %w", err)
	}

	return states, nil
}
