// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package api

import (
	"context"
	"errors"
	"fmt"

	"github.com/google/uuid"
	"github.com/siderolabs/talos/pkg/machinery/api/machine"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/talos-proxmox/talos-proxmox/lab/site/guest"
	"github.com/talos-proxmox/talos-proxmox/lab/talos/disks"
	"github.com/talos-proxmox/talos-proxmox/lab/talos/machineconfig"
	"github.com/talos-proxmox/talos-proxmox/lab/talos/node"
)

// Reboot starts the node again.
func (s *machineServer) Reboot(context.Context, *machine.RebootRequest) (*machine.RebootResponse, error) {
	actor := uuid.NewString()
	s.node.Ask(node.Request{Sequence: node.SequenceReboot, Actor: actor, Run: s.node.Reboot})

	return &machine.RebootResponse{Messages: []*machine.Reboot{{ActorId: actor}}}, nil
}

// Shutdown turns the machine off.
func (s *machineServer) Shutdown(_ context.Context, in *machine.ShutdownRequest) (*machine.ShutdownResponse, error) {
	actor := uuid.NewString()
	s.node.Ask(node.Request{Sequence: node.SequenceShutdown, Actor: actor, Takeover: true, Run: s.node.Shutdown(in.GetForce())})

	return &machine.ShutdownResponse{Messages: []*machine.Shutdown{{ActorId: actor}}}, nil
}

// Reset wipes the node.
func (s *machineServer) Reset(_ context.Context, in *machine.ResetRequest) (*machine.ResetResponse, error) {
	disks, err := s.resetDisks(in)
	if err != nil {
		return nil, err
	}

	actor := uuid.NewString()
	s.node.Ask(node.Request{Sequence: node.SequenceReset, Actor: actor, Run: s.node.Reset(in, disks)})

	return &machine.ResetResponse{Messages: []*machine.Reset{{ActorId: actor}}}, nil
}

func (s *machineServer) resetDisks(in *machine.ResetRequest) ([]*guest.Disk, error) {
	if len(in.GetUserDisksToWipe()) > 0 && in.GetMode() == machine.ResetRequest_SYSTEM_DISK {
		return nil, status.Error(codes.Unknown,
			"reset failed: invalid input, wipe mode SYSTEM_DISK doesn't support UserDisksToWipe parameter")
	}
	if len(in.GetSystemPartitionsToWipe()) > 0 && in.GetMode() == machine.ResetRequest_USER_DISKS {
		return nil, status.Error(codes.Unknown,
			"reset failed: invalid input, wipe mode USER_DISKS doesn't support SystemPartitionsToWipe parameter")
	}
	for _, p := range in.GetSystemPartitionsToWipe() {
		switch p.GetLabel() {
		case "STATE", "EPHEMERAL", "META":
		default:
			return nil, status.Errorf(codes.Unknown, "failed to get volume status with label %q: "+
				"resource VolumeStatuses.block.talos.dev(runtime/%s@undefined) doesn't exist", p.GetLabel(), p.GetLabel())
		}
	}

	devices := disks.List(s.node.VM)
	var chosen []*guest.Disk
	for _, name := range in.GetUserDisksToWipe() {
		d := disks.Find(devices, name)
		switch {
		case d == nil || d.Disk == nil:
			return nil, status.Errorf(codes.Unknown, "reset user disk failed: device %s wasn't found", name)
		case s.node.Disk != nil && s.node.Disk.Disk == d.Disk:
			return nil, status.Errorf(codes.Unknown, "reset user disk failed: device %s is the system disk", name)
		}
		chosen = append(chosen, d.Disk)
	}

	return chosen, nil
}

// Bootstrap creates the cluster's etcd on this node.
func (s *machineServer) Bootstrap(_ context.Context, in *machine.BootstrapRequest) (*machine.BootstrapResponse, error) {
	n := s.node
	end := n.VM.Trace.Begin("talos.bootstrap", n.Object(), n.Attrs())
	err := n.Bootstrap(in)
	end(err)
	if err != nil {
		return nil, err
	}

	return &machine.BootstrapResponse{Messages: []*machine.Bootstrap{{}}}, nil
}

// Upgrade installs another Talos and reboots into it.
func (s *machineServer) Upgrade(ctx context.Context, in *machine.UpgradeRequest) (*machine.UpgradeResponse, error) {
	n := s.node
	if n.Disk == nil {
		return nil, status.Error(codes.FailedPrecondition, "Talos is not installed")
	}
	img, err := n.Pull(ctx, in.GetImage())
	if err != nil {
		return nil, fmt.Errorf("error validating installer image %q: %w", in.GetImage(), err)
	}
	if machineconfig.IsControlPlane(n.Config()) && !in.GetForce() {
		if err := n.EtcdReadyForUpgrade(); err != nil {
			return nil, err
		}
	}

	actor := uuid.NewString()
	sequence, run := node.SequenceUpgrade, n.Upgrade(n.OnDisk(img))
	if in.GetStage() {
		next := n.OnDisk(img)
		if err := n.Disk.Update(func(d *disks.Installation) { d.Staged = &next }); err != nil {
			return nil, fmt.Errorf("error adding staged upgrade image ref tag: %w", err)
		}
		sequence, run = node.SequenceStageUpgrade, n.Reboot
	}
	n.Ask(node.Request{Sequence: sequence, Actor: actor, Run: run})

	return &machine.UpgradeResponse{
		Messages: []*machine.Upgrade{{Ack: "Upgrade request received", ActorId: actor}},
	}, nil
}

// Rollback goes back to the Talos before the last upgrade.
func (s *machineServer) Rollback(context.Context, *machine.RollbackRequest) (*machine.RollbackResponse, error) {
	n := s.node
	previous := n.Disk.Read().Previous
	if previous == nil {
		return nil, errors.New("file does not exist")
	}

	err := n.Disk.Update(func(d *disks.Installation) {
		now := d.Active
		d.Active, d.Previous = *previous, &now
	})
	if err != nil {
		return nil, err
	}
	n.Ask(node.Request{Sequence: node.SequenceReboot, Actor: uuid.NewString(), Takeover: true, Run: n.Reboot})

	return &machine.RollbackResponse{Messages: []*machine.Rollback{{}}}, nil
}
