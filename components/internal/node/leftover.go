// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package node

import (
	"context"
	"fmt"
	"time"

	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"

	"github.com/talos-proxmox/talos-proxmox/components/internal/hook"
	"github.com/talos-proxmox/talos-proxmox/internal/proxmox"
	"github.com/talos-proxmox/talos-proxmox/internal/talosapi"
	"github.com/talos-proxmox/talos-proxmox/spec"
)

// hooks returns what runs around the VM's own steps: the caller's hooks, and before it is created a look for
// what an interrupted run left of it.
func (a Args) hooks(ctx *pulumi.Context) (*pulumi.ResourceHookBinding, error) {
	hooks := pulumi.ResourceHookBinding{}
	if a.Hooks != nil {
		hooks = *a.Hooks
	}
	clearAway, err := hook.Register(ctx, hook.ID("node", a.Name, "leftover"), func(step hook.Step, _ *pulumi.ResourceHookArgs) error {
		if err := a.clearLeftover(step); err != nil {
			return fmt.Errorf("node %q: %w", a.Node.Node.Name, err)
		}

		return nil
	})
	if err != nil {
		return nil, err
	}
	hooks.BeforeCreate = append([]*pulumi.ResourceHook{clearAway}, hooks.BeforeCreate...)
	byHand, err := a.byHandHooks(ctx)
	if err != nil {
		return nil, err
	}
	hooks.BeforeUpdate = append(byHand, hooks.BeforeUpdate...)

	return &hooks, nil
}

// clearLeftover removes the VM that an earlier run was interrupted in making. Neither the state nor the
// provider knows it, and its id is taken.
func (a Args) clearLeftover(s hook.Step) error {
	node := a.Node.Node
	if a.Record.IsNew(node.Name) || !node.Address().IsValid() {
		return nil
	}
	ctx := s.Ctx.Context()
	client, err := a.API.client(ctx)
	if err != nil || client == nil {
		return err
	}
	wanted := wantedVM(node)
	address := node.Address().String()

	return proxmox.Leftover{
		Client: client, Timeout: time.Duration(*a.Lifecycle.ApplyTimeout), Interval: time.Second, Report: s.Report,
		Living: func(ctx context.Context) bool {
			calling, cancel := context.WithTimeout(ctx, 5*time.Second)
			defer cancel()

			return a.Serves != nil && a.Serves(calling, address)
		},
		Blank: func(ctx context.Context) error {
			calling, cancel := context.WithTimeout(ctx, 5*time.Second)
			defer cancel()

			return talosapi.InMaintenance(calling, address)
		},
	}.Clear(ctx, wanted)
}

// Reboot has Proxmox VE reboot a node's VM, which brings pending edits of it into force.
func (a API) Reboot(ctx context.Context, n spec.NamedNode) error {
	client, err := a.client(ctx)
	if err != nil {
		return err
	}
	if client == nil {
		return fmt.Errorf("its VM still runs as before the edit, and there are no credentials of Proxmox VE to reboot it\n"+
			"  reboot the VM of %s in Proxmox VE (not inside the guest), and run `pulumi up` again", n.Name)
	}

	return client.Reboot(ctx, wantedVM(n))
}
