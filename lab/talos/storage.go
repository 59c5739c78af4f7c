// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package talos

import (
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/siderolabs/talos/pkg/machinery/api/storage"
	"google.golang.org/protobuf/types/known/emptypb"
)

// diskModel is how QEMU's disks present themselves.
const diskModel = "QEMU HARDDISK"

func diskTransport(path string) string {
	if strings.HasPrefix(path, "/dev/vd") {
		return "virtio"
	}

	return "scsi"
}

// storageServer lists the disks of the machine.
type storageServer struct {
	storage.UnimplementedStorageServiceServer
	node        *node
	maintenance bool
}

// Disks lists the disks that Linux sees.
func (s *storageServer) Disks(context.Context, *emptypb.Empty) (*storage.DisksResponse, error) {
	paths := devicePaths(s.node.m.Disks)
	reply := &storage.Disks{}
	for _, path := range slices.Sorted(maps.Keys(paths)) {
		d := paths[path]
		reply.Disks = append(reply.Disks, &storage.Disk{
			DeviceName: path, Model: diskModel, Size: uint64(max(d.Size, 0)), Serial: d.Serial,
			Type: storage.Disk_HDD, BusPath: "/pci0000:00/0000:00:05.0",
			SystemDisk: s.node.disk != nil && s.node.disk.disk == d,
		})
	}

	return &storage.DisksResponse{Messages: []*storage.Disks{reply}}, nil
}
