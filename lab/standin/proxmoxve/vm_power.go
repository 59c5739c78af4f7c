// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package proxmoxve

import (
	"context"
	"fmt"

	"github.com/talos-proxmox/talos-proxmox/lab/standin/bridge"
)

// power turns the VM on or off where that changed, or where it was turned off for the change.
func (u *update) power(ctx context.Context) error {
	if (!u.op.Changed("started") && !u.stopped) || u.op.In.Bool("template") {
		return nil
	}

	if u.op.In.Bool("started") {
		return u.start(ctx, u.op)
	}
	u.reboot = false

	return u.shutdown(ctx, u.op.In)
}

// disks moves and grows disks, and ends with the reboot that the changes need.
func (u *update) disks(ctx context.Context) error {
	in := u.op.In

	restarted, err := u.fitDisks(ctx)
	if err != nil || restarted || !u.reboot || in.Bool("template") {
		return err
	}

	status, err := u.status(ctx)
	if err != nil || status == "stopped" {
		return err
	}

	return u.machine.reboot(ctx, in)
}

func (u *update) fitDisks(ctx context.Context) (restarted bool, err error) {
	if !u.op.Changed("disks") {
		return false, nil
	}

	now := map[string]bridge.Tree{}
	for _, d := range u.op.In.List("disks") {
		now[d.Str("interface")] = d
	}

	var moves, grows []bridge.Tree
	for _, was := range u.op.Was.List("disks") {
		iface := was.Str("interface")

		d, ok := now[iface]
		switch {
		case !ok:
			return false, fmt.Errorf(
				"deletion of disks not supported. Please delete disk by hand. Old interface was %q", iface)
		case d.Int("size") < was.Int("size"):
			return false, fmt.Errorf("Cannot shrink %s:%s in VM %d, it is not supported!", was.Str("datastoreId"),
				u.stateDisk(iface).Str("pathInDatastore"), u.id) // the provider's text
		}
		if d.Str("datastoreId") != was.Str("datastoreId") {
			moves = append(moves, d)
		}
		if d.Int("size") > was.Int("size") {
			grows = append(grows, d)
		}
	}

	return u.moveAndGrow(ctx, moves, grows)
}

// stateDisk returns what the state says about a disk.
func (u *update) stateDisk(iface string) bridge.Tree {
	for _, d := range u.op.State.List("disks") {
		if d.Str("interface") == iface {
			return d
		}
	}

	return nil
}

// moveAndGrow shuts the VM down for moves, and starts it again.
func (u *update) moveAndGrow(ctx context.Context, moves, grows []bridge.Tree) (restarted bool, err error) {
	in := u.op.In
	off := len(moves) > 0 && !in.Bool("template")

	if off {
		if err := u.shutdown(ctx, in); err != nil {
			return false, err
		}
	}
	for _, d := range moves {
		if err := u.moveDisk(ctx, d.Str("interface"), d.Str("datastoreId")); err != nil {
			return false, fmt.Errorf("error waiting for VM disk move: %w", err)
		}
	}
	for _, d := range grows {
		if err := u.resizeDisk(ctx, d.Str("interface"), d.Int("size")); err != nil {
			return false, fmt.Errorf("error waiting for VM disk resize: %w", err)
		}
	}

	if off && in.Bool("started") {
		return true, u.start(ctx, u.op)
	}

	return false, nil
}
