// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package node

import (
	"context"
	"fmt"

	"github.com/siderolabs/talos/pkg/machinery/api/machine"

	"github.com/talos-proxmox/talos-proxmox/lab/site/guest"
	"github.com/talos-proxmox/talos-proxmox/lab/talos/disks"
)

// quiesce stops what runs on the node, and tells watchers so.
func (n *Node) quiesce(actor string) {
	n.stopping()
	_ = n.Events.Phase("stopEverything", actor, func() error { // never fails
		n.setKubelet(false)

		return nil
	})
}

// Reboot stops the node and starts it again.
func (n *Node) Reboot(ctx context.Context, actor string) (guest.Exit, error) {
	end := n.VM.Trace.Begin("talos.reboot", n.Object(), n.Attrs())
	n.Events.Start(SequenceReboot, actor)
	n.setStage(stageRebooting, nil)
	n.quiesce(actor)
	exit, err := n.rebootNow(ctx)
	end(err)

	return exit, err
}

// Shutdown stops the node and turns the machine off.
// An ACPI shutdown is forced: it drains nothing.
func (n *Node) Shutdown(force bool) func(context.Context, string) (guest.Exit, error) {
	return func(ctx context.Context, actor string) (guest.Exit, error) {
		end := n.VM.Trace.Begin("talos.shutdown", n.Object(), n.Attrs())
		n.Events.Start(SequenceShutdown, actor)
		n.setStage(stageShutdown, nil)
		if !force {
			if err := n.drain(ctx, actor); err != nil {
				err = failed(2, SequenceShutdown, err)
				n.Events.Fail(SequenceShutdown, actor, err)
				n.setStage(stageRebooting, nil)
				end(err)

				return stays, err
			}
		}
		n.quiesce(actor)
		err := n.VM.Clock.Sleep(ctx, rebootTime)
		end(err)

		return guest.ExitPowerOff, err
	}
}

// failed returns what Talos says of a sequence in which a phase failed.
func failed(phase int, sequence string, err error) error {
	return fmt.Errorf("error running phase %d in %s sequence: task 1/1: failed, %w", phase, sequence, err)
}

// Reset returns the sequence that a reset request asks for.
func (n *Node) Reset(
	in *machine.ResetRequest, userDisks []*guest.Disk,
) func(context.Context, string) (guest.Exit, error) {
	return func(ctx context.Context, actor string) (guest.Exit, error) {
		end := n.VM.Trace.Begin("talos.reset", n.Object(), n.Attrs())
		n.Events.Start(SequenceReset, actor)
		n.setStage(stageResetting, nil)
		exit, err := n.doReset(ctx, actor, in, userDisks)
		if err != nil {
			n.Events.Fail(SequenceReset, actor, err)
		} else {
			n.Events.Stop(SequenceReset, actor)
		}
		end(err)

		return exit, err
	}
}

func (n *Node) doReset(
	ctx context.Context, actor string, in *machine.ResetRequest, userDisks []*guest.Disk,
) (guest.Exit, error) {
	if in.GetGraceful() {
		if err := n.drain(ctx, actor); err != nil { // a reset goes on without
			n.Console("drain", "error", err)
		}
	}
	if g, _ := n.Group(); in.GetGraceful() && g != nil {
		err := n.Events.Phase("leave", actor, func() error { return n.LeaveEtcd(ctx) })
		if err != nil {
			n.setStage(stageRebooting, nil)

			return stays, failed(4, SequenceReset, err)
		}
	}
	n.quiesce(actor)
	n.setLeft() // nothing may be written to the disk from here on
	n.Poke()

	if err := n.wipeFor(in, userDisks); err != nil {
		return guest.ExitReboot, err
	}
	if err := n.VM.Clock.Sleep(ctx, rebootTime); err != nil {
		return guest.ExitPowerOff, err
	}
	if in.GetReboot() {
		return guest.ExitReboot, nil
	}

	return guest.ExitPowerOff, nil
}

// wipeFor removes what a reset request names: partitions, or the whole system disk, and user disks.
func (n *Node) wipeFor(in *machine.ResetRequest, userDisks []*guest.Disk) error {
	for _, d := range userDisks {
		if err := d.Store(nil); err != nil {
			return fmt.Errorf("wiping disk %s: %w", d.Device, err)
		}
	}
	if in.GetMode() == machine.ResetRequest_USER_DISKS || n.Disk == nil {
		return nil
	}

	state, ephemeral, whole := false, false, len(in.GetSystemPartitionsToWipe()) == 0
	for _, p := range in.GetSystemPartitionsToWipe() {
		state = state || p.GetWipe() && p.GetLabel() == "STATE"
		ephemeral = ephemeral || p.GetWipe() && p.GetLabel() == "EPHEMERAL"
	}

	replica := n.Disk.Read().Etcd
	var err error
	if whole {
		err = disks.Wipe(n.Disk.Disk)
	} else {
		err = n.Disk.Update(func(in *disks.Installation) {
			if state {
				in.Config, in.NodeID = nil, ""
			}
			if ephemeral {
				in.Etcd = nil
			}
		})
	}
	if err == nil && replica != nil && (whole || ephemeral) {
		if g, _ := n.Group(); g != nil {
			g.Detach(replica.Member, n)
		}
		err = n.Nodes.dropReplica(replica.Cluster, replica.Member)
	}

	return err
}
