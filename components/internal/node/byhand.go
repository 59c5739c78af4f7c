// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package node

import (
	"fmt"
	"strings"

	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"

	"github.com/talos-proxmox/talos-proxmox/components/internal/hook"
	"github.com/talos-proxmox/talos-proxmox/components/internal/vmargs"
	"github.com/talos-proxmox/talos-proxmox/internal/proxmox"
)

// byHandHooks returns hooks that stop an update of the VM which the provider would fail at half-way because of what
// somebody did by hand. The state then holds the new values, as if all had been done.
func (a Args) byHandHooks(ctx *pulumi.Context) ([]*pulumi.ResourceHook, error) {
	disks, err := hook.RegisterPlan(ctx, hook.ID("node", a.Name, "added-disks"),
		func(_ hook.Step, args *pulumi.ResourceHookArgs) error {
			return a.refuseAddedDisks(vmargs.MissingDisks(args.OldOutputs, args.NewInputs))
		})
	if err != nil {
		return nil, err
	}
	started, err := hook.Register(ctx, hook.ID("node", a.Name, "started"), func(step hook.Step, args *pulumi.ResourceHookArgs) error {
		if !vmargs.EditStarts(args.OldOutputs, args.NewInputs) {
			return nil
		}

		return a.refuseRunning(step)
	})
	if err != nil {
		return nil, err
	}

	return []*pulumi.ResourceHook{disks, started}, nil
}

// refuseAddedDisks refuses to update a VM that has disks which the stack file does not have: the provider takes none out.
func (a Args) refuseAddedDisks(slots []string) error {
	if len(slots) == 0 {
		return nil
	}
	name, id := a.Node.Node.Name, wantedVM(a.Node.Node).ID

	return fmt.Errorf("node %s: its VM %d has the disk %s, which the stack file does not have, and the provider takes no disk out\n"+
		"  was it added by hand? Take it out on its host (%s, which keeps its data as an unused disk), or write it under nodes.%s.disks; "+
		"then run `pulumi up --refresh`", name, id, strings.Join(slots, ", "), proxmox.TakeOut(id, slots), name)
}

// refuseRunning refuses to start a VM that runs: Proxmox VE fails such a task.
func (a Args) refuseRunning(s hook.Step) error {
	ctx := s.Ctx.Context()
	client, err := a.API.client(ctx)
	if err != nil || client == nil {
		return err
	}
	wanted := wantedVM(a.Node.Node)
	found, err := client.Find(ctx, wanted)
	if err != nil || found == nil || found.Status != "running" {
		return err
	}

	return fmt.Errorf("node %s: its VM %d is off in Pulumi's state and runs on host %s: somebody started it since the last refresh, and "+
		"Proxmox VE starts no VM that runs\n  run `pulumi up --refresh`", wanted.Name, found.ID, found.Host)
}
