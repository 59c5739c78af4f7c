// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package talos

import (
	"context"
	"fmt"

	"github.com/siderolabs/talos/pkg/machinery/api/machine"

	"github.com/talos-proxmox/talos-proxmox/lab/site/guest"
)

// quiesce stops what runs on the node, and tells watchers so.
func (n *node) quiesce(actor string) {
	n.stopping()
	_ = n.events.phase("stopEverything", actor, func() error { // never fails
		n.setKubelet(false)

		return nil
	})
}

// reboot stops the node and starts it again.
func (n *node) reboot(ctx context.Context, actor string) (guest.Exit, error) {
	end := n.m.Trace.Begin("talos.reboot", n.object(), n.attrs())
	n.events.sequence("reboot", machine.SequenceEvent_START, actor, nil)
	n.setStage(stageRebooting, nil)
	n.quiesce(actor)
	exit, err := n.rebootNow(ctx)
	end(err)

	return exit, err
}

// shutdown stops the node and turns the machine off.
func (n *node) shutdown(ctx context.Context, actor string) (guest.Exit, error) {
	end := n.m.Trace.Begin("talos.shutdown", n.object(), n.attrs())
	n.events.sequence("shutdown", machine.SequenceEvent_START, actor, nil)
	n.setStage(stageShutdown, nil)
	n.drain(ctx, actor)
	n.quiesce(actor)
	err := n.m.Clock.Sleep(ctx, rebootTime)
	end(err)

	return guest.ExitPowerOff, err
}

// reset returns the sequence that a reset request asks for.
func (n *node) reset(
	in *machine.ResetRequest, userDisks []*guest.Disk,
) func(context.Context, string) (guest.Exit, error) {
	return func(ctx context.Context, actor string) (guest.Exit, error) {
		end := n.m.Trace.Begin("talos.reset", n.object(), n.attrs())
		n.events.sequence("reset", machine.SequenceEvent_START, actor, nil)
		n.setStage(stageResetting, nil)
		exit, err := n.doReset(ctx, actor, in, userDisks)
		n.events.sequence("reset", machine.SequenceEvent_STOP, actor, err)
		end(err)

		return exit, err
	}
}

func (n *node) doReset(
	ctx context.Context, actor string, in *machine.ResetRequest, userDisks []*guest.Disk,
) (guest.Exit, error) {
	if in.GetGraceful() {
		n.drain(ctx, actor)
	}
	if g, _ := n.group(); in.GetGraceful() && g != nil {
		err := n.events.phase("leave", actor, func() error { return n.leaveEtcd(ctx) })
		if err != nil {
			n.setStage(stageRunning, nil)

			return stays, fmt.Errorf("leaving etcd: %w", err)
		}
	}
	n.quiesce(actor)
	n.setLeft() // nothing may be written to the disk from here on
	n.poke()

	if err := n.wipeFor(in, userDisks); err != nil {
		return guest.ExitReboot, err
	}
	if err := n.m.Clock.Sleep(ctx, rebootTime); err != nil {
		return guest.ExitPowerOff, err
	}
	if in.GetReboot() {
		return guest.ExitReboot, nil
	}

	return guest.ExitPowerOff, nil
}

// wipeFor removes what a reset request names: partitions, or the whole system disk, and user disks.
func (n *node) wipeFor(in *machine.ResetRequest, userDisks []*guest.Disk) error {
	for _, d := range userDisks {
		if err := d.Store(nil); err != nil {
			return fmt.Errorf("wiping disk %s: %w", d.Device, err)
		}
	}
	if in.GetMode() == machine.ResetRequest_USER_DISKS || n.disk == nil {
		return nil
	}

	state, ephemeral, whole := false, false, len(in.GetSystemPartitionsToWipe()) == 0
	for _, p := range in.GetSystemPartitionsToWipe() {
		state = state || p.GetWipe() && p.GetLabel() == "STATE"
		ephemeral = ephemeral || p.GetWipe() && p.GetLabel() == "EPHEMERAL"
	}

	replica := n.disk.read().Etcd
	var err error
	if whole {
		err = wipe(n.disk.disk)
	} else {
		err = n.disk.update(func(in *installation) {
			if state {
				in.Config, in.NodeID = nil, ""
			}
			if ephemeral {
				in.Etcd = nil
			}
		})
	}
	if err == nil && replica != nil && (whole || ephemeral) {
		if g, _ := n.group(); g != nil {
			g.detach(replica.Member, n)
		}
		err = n.nodes.dropReplica(replica.Cluster, replica.Member)
	}

	return err
}
