// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package talos

import (
	"context"
	"fmt"

	"github.com/google/uuid"
	"github.com/siderolabs/talos/pkg/machinery/api/machine"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/talos-proxmox/talos-proxmox/lab/fault"
	"github.com/talos-proxmox/talos-proxmox/lab/site/guest"
)

// errBusy is the answer while another sequence runs.
var errBusy = status.Error(codes.Unavailable, "locked")

// Reboot starts the node again.
func (s *machineServer) Reboot(context.Context, *machine.RebootRequest) (*machine.RebootResponse, error) {
	actor := uuid.NewString()
	if !s.node.ask(request{actor: actor, run: s.node.reboot}) {
		return nil, errBusy
	}

	return &machine.RebootResponse{Messages: []*machine.Reboot{{ActorId: actor}}}, nil
}

// Shutdown turns the machine off.
func (s *machineServer) Shutdown(context.Context, *machine.ShutdownRequest) (*machine.ShutdownResponse, error) {
	actor := uuid.NewString()
	if !s.node.ask(request{actor: actor, run: s.node.shutdown}) {
		return nil, errBusy
	}

	return &machine.ShutdownResponse{Messages: []*machine.Shutdown{{ActorId: actor}}}, nil
}

// Reset wipes the node.
func (s *machineServer) Reset(_ context.Context, in *machine.ResetRequest) (*machine.ResetResponse, error) {
	disks, err := s.resetDisks(in)
	if err != nil {
		return nil, err
	}

	actor := uuid.NewString()
	if !s.node.ask(request{actor: actor, run: s.node.reset(in, disks)}) {
		return nil, errBusy
	}

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
		case "STATE", "EPHEMERAL", "META", "EFI", "BOOT", "BIOS":
		default:
			return nil, status.Errorf(codes.Unknown, "failed to get volume status with label %q: "+
				"resource VolumeStatuses.block.talos.dev(runtime/%s@undefined) doesn't exist", p.GetLabel(), p.GetLabel())
		}
	}

	paths := devicePaths(s.node.m.Disks)
	var disks []*guest.Disk
	for _, name := range in.GetUserDisksToWipe() {
		d := paths[name]
		switch {
		case d == nil:
			return nil, status.Errorf(codes.Unknown, "reset user disk failed: device %s wasn't found", name)
		case s.node.disk != nil && s.node.disk.disk == d:
			return nil, status.Errorf(codes.Unknown, "reset user disk failed: device %s is the system disk", name)
		}
		disks = append(disks, d)
	}

	return disks, nil
}

// Bootstrap creates the cluster's etcd on this node.
func (s *machineServer) Bootstrap(_ context.Context, in *machine.BootstrapRequest) (*machine.BootstrapResponse, error) {
	n := s.node
	end := n.m.Trace.Begin("talos.bootstrap", n.object(), n.attrs())
	err := n.bootstrap(in)
	end(err)
	if err != nil {
		return nil, err
	}

	return &machine.BootstrapResponse{Messages: []*machine.Bootstrap{{}}}, nil
}

func (n *node) bootstrap(in *machine.BootstrapRequest) error {
	_, skewed := n.holds(fault.ClockSkew)
	switch {
	case skewed:
		return status.Error(codes.FailedPrecondition, "time is not in sync yet")
	case !n.bootstrapAllowed():
		return status.Error(codes.FailedPrecondition, "bootstrap is not available yet")
	case !isControlPlane(n.config()):
		return status.Error(codes.FailedPrecondition, "bootstrap can only be performed on a control plane node")
	case n.disk.read().Etcd != nil:
		return status.Error(codes.AlreadyExists, "etcd data directory is not empty")
	}

	var restore []byte
	if in.GetRecoverEtcd() {
		n.mu.Lock()
		restore = n.upload
		n.mu.Unlock()
		if len(restore) == 0 {
			return fmt.Errorf("error verifying snapshot: stat /var/lib/etcd.snapshot: no such file or directory")
		}
	}

	return n.bootstrapEtcd(restore)
}
