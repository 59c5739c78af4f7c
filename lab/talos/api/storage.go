// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package api

import (
	"context"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/talos-proxmox/talos-proxmox/lab/site/guest"

	"github.com/siderolabs/talos/pkg/machinery/api/storage"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/talos-proxmox/talos-proxmox/lab/talos/disks"
	"github.com/talos-proxmox/talos-proxmox/lab/talos/node"
)

// storageServer lists the disks of the machine.
type storageServer struct {
	storage.UnimplementedStorageServiceServer
	node        *node.Node
	maintenance bool
}

// Disks lists the disks that Linux sees.
func (s *storageServer) Disks(context.Context, *emptypb.Empty) (*storage.DisksResponse, error) {
	reply := &storage.Disks{}
	for _, d := range disks.List(s.node.VM) {
		kind := storage.Disk_HDD
		switch {
		case d.Spec.GetCdrom():
			kind = storage.Disk_CD
		case d.Disk == nil:
			kind = storage.Disk_UNKNOWN
		case !d.Spec.GetRotational():
			kind = storage.Disk_SSD
		}
		reply.Disks = append(reply.Disks, &storage.Disk{
			DeviceName: d.Path(), Model: d.Spec.GetModel(), Size: d.Spec.GetSize(), Serial: d.Spec.GetSerial(), Type: kind,
			Modalias: d.Spec.GetModalias(), Wwid: d.Spec.GetWwid(), BusPath: d.Spec.GetBusPath(), Subsystem: d.Spec.GetSubSystem(),
			Readonly: d.Spec.GetReadonly(), SystemDisk: d.Disk != nil && s.node.Disk != nil && s.node.Disk.Disk == d.Disk,
		})
	}

	return &storage.DisksResponse{Messages: []*storage.Disks{reply}}, nil
}

// BlockDeviceWipe wipes the devices that a request names.
func (s *storageServer) BlockDeviceWipe(
	_ context.Context, in *storage.BlockDeviceWipeRequest,
) (*storage.BlockDeviceWipeResponse, error) {
	devices := disks.List(s.node.VM)
	var chosen []*guest.Disk
	for _, want := range in.GetDevices() {
		d := disks.Find(devices, "/dev/"+want.GetDevice())
		switch {
		case d == nil:
			return nil, status.Errorf(codes.NotFound, "blockdevice %q not found", want.GetDevice())
		case d.Disk == nil:
			return nil, status.Errorf(codes.FailedPrecondition, "blockdevice %q is read-only", want.GetDevice())
		case s.node.Disk != nil && s.node.Disk.Disk == d.Disk:
			return nil, status.Errorf(codes.FailedPrecondition, "blockdevice %q is in use by volume %q", want.GetDevice(), "EPHEMERAL")
		}
		chosen = append(chosen, d.Disk)
	}
	for _, d := range chosen {
		if err := disks.Wipe(d); err != nil {
			return nil, err
		}
	}

	return &storage.BlockDeviceWipeResponse{Messages: []*storage.BlockDeviceWipe{{}}}, nil
}
