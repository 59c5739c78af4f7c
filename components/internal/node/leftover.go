// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package node

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"time"

	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"

	"github.com/talos-proxmox/talos-proxmox/components/internal/hook"
	"github.com/talos-proxmox/talos-proxmox/internal/proxmox"
	"github.com/talos-proxmox/talos-proxmox/internal/talosapi"
	"github.com/talos-proxmox/talos-proxmox/spec"
)

// access returns endpoint and credentials as the provider finds them: in the settings, else in the
// environment.
func (a API) access(ctx context.Context) (proxmox.Access, error) {
	p := a.Settings
	found := proxmox.Access{
		Endpoint: cmp.Or(spec.Value(p.Endpoint), os.Getenv("PROXMOX_VE_ENDPOINT")), Insecure: spec.Value(p.Insecure),
		Token: os.Getenv("PROXMOX_VE_API_TOKEN"), Username: cmp.Or(spec.Value(p.Username), os.Getenv("PROXMOX_VE_USERNAME")),
		Password: os.Getenv("PROXMOX_VE_PASSWORD"),
	}
	var err error
	switch {
	case a.Token != nil:
		found.Token, err = a.Token.Get(ctx)
	case a.Password != nil:
		found.Token = ""
		found.Password, err = a.Password.Get(ctx)
	case p.APIToken != nil:
		found.Token = p.APIToken.Reveal()
	case p.Password != nil:
		found.Token, found.Password = "", p.Password.Reveal()
	}

	return found, err
}

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
	access, err := a.API.access(ctx)
	if err != nil || !access.Complete() {
		return err
	}
	client, err := proxmox.New(access)
	if err != nil {
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

// wantedVM tells a node's VM from others.
func wantedVM(n spec.NamedNode) proxmox.Wanted {
	wanted := proxmox.Wanted{ID: spec.Value(n.VMID), Name: n.Name}
	for _, d := range n.Devices() {
		wanted.MACs = append(wanted.MACs, *d.MAC)
	}

	return wanted
}

// Reboot has Proxmox VE reboot a node's VM, which brings pending edits of it into force.
func (a API) Reboot(ctx context.Context, n spec.NamedNode) error {
	access, err := a.access(ctx)
	if err != nil {
		return err
	}
	if !access.Complete() {
		return fmt.Errorf("its VM still runs as before the edit, and there are no credentials of Proxmox VE to reboot it\n"+
			"  reboot the VM of %s in Proxmox VE (not inside the guest), and run `pulumi up` again", n.Name)
	}
	client, err := proxmox.New(access)
	if err != nil {
		return err
	}

	return client.Reboot(ctx, wantedVM(n))
}
