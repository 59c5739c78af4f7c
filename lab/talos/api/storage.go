// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package api

import (
	"context"
	"maps"
	"slices"

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
	paths := disks.DevicePaths(s.node.VM.Disks)
	reply := &storage.Disks{}
	for _, path := range slices.Sorted(maps.Keys(paths)) {
		d := paths[path]
		reply.Disks = append(reply.Disks, &storage.Disk{
			DeviceName: path, Model: disks.Model, Size: uint64(max(d.Size, 0)), Serial: d.Serial,
			Type: storage.Disk_HDD, BusPath: "/pci0000:00/0000:00:05.0",
			SystemDisk: s.node.Disk != nil && s.node.Disk.Disk == d,
		})
	}

	return &storage.DisksResponse{Messages: []*storage.Disks{reply}}, nil
}
