// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package components

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"

	"github.com/talos-proxmox/talos-proxmox/internal/proxmox"
	"github.com/talos-proxmox/talos-proxmox/internal/talosapi"
	"github.com/talos-proxmox/talos-proxmox/spec"
)

// leftoverLimit bounds the wait for a VM that was left behind to say that it is blank: one boot.
const leftoverLimit = 3 * time.Minute

// hooks are what runs around the VM's own steps: those that were given, and before it is created a look
// for what an interrupted run left of it.
func (b *nodeBuilder) hooks() (*pulumi.ResourceHookBinding, error) {
	hooks := pulumi.ResourceHookBinding{}
	if b.args.Hooks != nil {
		hooks = *b.args.Hooks
	}
	clearAway, err := registerHook(b.ctx, ProxmoxNodeType, b.name, "leftover", b.clearLeftover)
	if err != nil {
		return nil, err
	}
	hooks.BeforeCreate = append([]*pulumi.ResourceHook{clearAway}, hooks.BeforeCreate...)

	return &hooks, nil
}

// noteNew is the hook of the guard's own creation: a VM that is created in the same run was never tried
// before, so that whatever stands in its place is somebody else's.
func (b *nodeBuilder) noteNew(*pulumi.ResourceHookArgs) error {
	b.isNew.Store(true)

	return nil
}

// clearLeftover removes the VM that an earlier run was interrupted in making. Neither the state nor the
// provider knows it, and its id is taken.
func (b *nodeBuilder) clearLeftover(args *pulumi.ResourceHookArgs) error {
	access := accessTo(b.args.Proxmox)
	node := b.args.Node
	if b.isNew.Load() || !access.Complete() || !node.Address().IsValid() {
		return nil
	}
	client, err := proxmox.New(access)
	if err != nil {
		return fmt.Errorf("node %q: %w", node.Name, err)
	}
	wanted := proxmox.Wanted{ID: spec.Or(node.VMID, 0), Name: node.Name}
	for _, d := range node.Devices() {
		wanted.MACs = append(wanted.MACs, *d.MAC)
	}
	address := node.Address().String()

	err = proxmox.Leftover{
		Client: client, Timeout: leftoverLimit, Interval: time.Second, Report: reportTo(b.ctx, args.URN),
		Blank: func(ctx context.Context) error {
			calling, cancel := context.WithTimeout(ctx, 5*time.Second)
			defer cancel()

			return talosapi.InMaintenance(calling, address)
		},
	}.Clear(b.ctx.Context(), wanted)
	if err != nil {
		return fmt.Errorf("node %q: %w", node.Name, err)
	}

	return nil
}

// accessTo is how the API is reached, as the provider finds it: in the settings, else in the environment.
func accessTo(p spec.Proxmox) proxmox.Access {
	a := proxmox.Access{
		Endpoint: spec.Or(p.Endpoint, os.Getenv("PROXMOX_VE_ENDPOINT")), Insecure: spec.Or(p.Insecure, false),
		Token: os.Getenv("PROXMOX_VE_API_TOKEN"), Username: spec.Or(p.Username, os.Getenv("PROXMOX_VE_USERNAME")),
		Password: os.Getenv("PROXMOX_VE_PASSWORD"),
	}
	switch {
	case p.APIToken != nil:
		a.Token = p.APIToken.Reveal()
	case p.Password != nil:
		a.Token, a.Password = "", p.Password.Reveal()
	}

	return a
}
