// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package api

import (
	"strings"

	"github.com/siderolabs/talos/pkg/machinery/api/common"
	"github.com/siderolabs/talos/pkg/machinery/api/machine"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/talos-proxmox/talos-proxmox/lab/talos/node"
)

// imageServer pulls and lists images since Talos 1.13. Verify, Import and Remove are not modelled.
type imageServer struct {
	machine.UnimplementedImageServiceServer
	node *node.Node
}

// List lists the images that the node pulled or runs.
func (s *imageServer) List(
	_ *machine.ImageServiceListRequest, out grpc.ServerStreamingServer[machine.ImageServiceListResponse],
) error {
	for _, name := range s.node.ImageNames() {
		err := out.Send(&machine.ImageServiceListResponse{
			Name: name, Digest: "sha256:" + node.ShortHash(name), CreatedAt: timestamppb.New(s.node.Started),
		})
		if err != nil {
			return err // the caller's own stream
		}
	}

	return nil
}

// Pull pulls an image and tells how that goes, layer by layer; here every image has one.
func (s *imageServer) Pull(
	in *machine.ImageServicePullRequest, out grpc.ServerStreamingServer[machine.ImageServicePullResponse],
) error {
	ref := in.GetImageRef()
	if err := checkContainerd(in.GetContainerd()); err != nil {
		return err
	}
	if !s.node.HasImage(ref) {
		if err := s.node.PullImage(out.Context(), ref); err != nil {
			if strings.Contains(err.Error(), "not found") {
				return status.Errorf(codes.NotFound, "error pulling image: %s", err)
			}

			return err
		}
		err := out.Send(&machine.ImageServicePullResponse{Response: &machine.ImageServicePullResponse_PullProgress{
			PullProgress: &machine.ImageServicePullProgress{
				LayerId: node.ShortHash(ref),
				Progress: &machine.ImageServicePullLayerProgress{
					Status:  machine.ImageServicePullLayerProgress_EXTRACT_COMPLETE,
					Elapsed: durationpb.New(node.PullTime),
				},
			},
		}})
		if err != nil {
			return err // the caller's own stream
		}
	}

	return out.Send(&machine.ImageServicePullResponse{ // the caller's own stream
		Response: &machine.ImageServicePullResponse_Name{Name: ref + "@sha256:" + node.ShortHash(ref)},
	})
}

// checkContainerd refuses a place for images that no node has.
func checkContainerd(in *common.ContainerdInstance) error {
	if in.GetNamespace() == common.ContainerdNamespace_NS_UNKNOWN {
		return status.Errorf(codes.InvalidArgument, "invalid containerd namespace %s", in.GetNamespace())
	}
	if in.GetDriver() == common.ContainerDriver_CONTAINERD && in.GetNamespace() == common.ContainerdNamespace_NS_CRI {
		return status.Errorf(codes.InvalidArgument, "cannot use CRI namespace with containerd driver")
	}

	return nil
}
