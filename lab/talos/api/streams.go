// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package api

import (
	"context"
	"fmt"
	"time"

	"github.com/siderolabs/talos/pkg/machinery/api/common"
	"github.com/siderolabs/talos/pkg/machinery/api/machine"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/talos-proxmox/talos-proxmox/lab/talos/events"
)

// bootIDFile changes with every boot.
const bootIDFile = "/proc/sys/kernel/random/boot_id"

// Events streams what happens on the node; the first event is empty and says that it began.
func (s *machineServer) Events(in *machine.EventsRequest, out grpc.ServerStreamingServer[machine.Event]) error {
	pos := s.node.Events.From(in)
	if err := out.Send(events.New(nil, in.GetWithActorId())); err != nil {
		return err // the caller's own stream
	}
	if in.GetTailSeconds() != 0 && (in.GetTailEvents() != 0 || in.GetTailId() != "") {
		return status.Error(codes.Unknown, "WithTailDuration can't be specified at the same time with WithTailEvents or WithTailID")
	}
	if in.GetTailId() != "" && in.GetTailEvents() != 0 {
		return status.Error(codes.Unknown, "WithTailID can't be specified at the same time with WithTailEvents or WithTailDuration")
	}

	for {
		e, next, err := s.node.Events.Next(out.Context(), pos)
		if err != nil {
			return err
		}
		pos = next
		if in.GetWithActorId() != "" && e.GetActorId() != in.GetWithActorId() {
			continue
		}
		if err := out.Send(e); err != nil {
			return err // the caller's own stream
		}
	}
}

// Read serves the few files that tell about the node.
func (s *machineServer) Read(in *machine.ReadRequest, out grpc.ServerStreamingServer[common.Data]) error {
	var content string
	switch in.GetPath() {
	case bootIDFile:
		content = s.node.BootID + "\n"
	case "/etc/os-release":
		content = fmt.Sprintf("NAME=\"Talos\"\nID=talos\nVERSION_ID=%s\nPRETTY_NAME=\"Talos (%s)\"\n",
			s.node.Image.Talos, s.node.Image.Talos)
	case "/etc/hostname":
		content = s.node.Hostname() + "\n"
	default:
		return status.Errorf(codes.NotFound, "stat %s: no such file or directory", in.GetPath())
	}

	return out.Send(&common.Data{Bytes: []byte(content)}) // the caller's own stream
}

// Dmesg prints the node's console.
func (s *machineServer) Dmesg(in *machine.DmesgRequest, out grpc.ServerStreamingServer[common.Data]) error {
	if in.GetTail() {
		return nil
	}
	for _, line := range s.node.ConsoleLines() {
		if err := out.Send(&common.Data{Bytes: []byte(line + "\n")}); err != nil {
			return err // the caller's own stream
		}
	}

	return nil
}

// Logs prints the events of a service, the only log that the lab has of it.
func (s *machineServer) Logs(in *machine.LogsRequest, out grpc.ServerStreamingServer[common.Data]) error {
	svc := s.node.Services.Get(in.GetId())
	if svc == nil {
		return status.Errorf(codes.Unknown, "log %q was not registered", in.GetId())
	}
	events := svc.GetEvents().GetEvents()
	if n := int(in.GetTailLines()); n >= 0 && n < len(events) {
		events = events[len(events)-n:]
	}
	for _, e := range events {
		line := e.GetTs().AsTime().Format(time.RFC3339) + " [" + e.GetState() + "] " + e.GetMsg() + "\n"
		if err := out.Send(&common.Data{Bytes: []byte(line)}); err != nil {
			return err // the caller's own stream
		}
	}

	return nil
}

// ImageList lists the images that the node pulled or runs.
func (s *machineServer) ImageList(
	in *machine.ImageListRequest, out grpc.ServerStreamingServer[machine.ImageListResponse],
) error {
	if err := checkNamespace(in.GetNamespace()); err != nil {
		return err
	}
	for _, name := range s.node.ImageNames() {
		err := out.Send(&machine.ImageListResponse{Name: name, CreatedAt: timestamppb.New(s.node.Started)})
		if err != nil {
			return err // the caller's own stream
		}
	}

	return nil
}

// ImagePull pulls an image ahead of its use.
func (s *machineServer) ImagePull(
	ctx context.Context, in *machine.ImagePullRequest,
) (*machine.ImagePullResponse, error) {
	if err := checkNamespace(in.GetNamespace()); err != nil {
		return nil, err
	}
	if err := s.node.PullImage(ctx, in.GetReference()); err != nil {
		return nil, err
	}

	return &machine.ImagePullResponse{Messages: []*machine.ImagePull{{}}}, nil
}

// checkNamespace refuses what is none of containerd's two namespaces.
func checkNamespace(namespace common.ContainerdNamespace) error {
	switch namespace {
	case common.ContainerdNamespace_NS_CRI, common.ContainerdNamespace_NS_SYSTEM:
		return nil
	default:
		return status.Errorf(codes.InvalidArgument, "invalid namespace %s", namespace)
	}
}
