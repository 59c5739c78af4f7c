// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package api

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"
	"time"

	"github.com/siderolabs/talos/pkg/machinery/api/common"
	"github.com/siderolabs/talos/pkg/machinery/api/machine"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/emptypb"
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

// machinedLogs lists logs that are no service's.
var machinedLogs = []string{"controller-runtime", "dns-resolve-cache", "early-startup", "kernel"}

// LogsContainers names the logs that there are.
func (s *machineServer) LogsContainers(context.Context, *emptypb.Empty) (*machine.LogsContainersResponse, error) {
	ids := slices.Clone(machinedLogs)
	for _, svc := range s.node.Services.List() {
		if len(svc.GetEvents().GetEvents()) > 0 && svc.GetState() == events.StateRunning {
			ids = append(ids, svc.GetId())
		}
	}

	return &machine.LogsContainersResponse{Messages: []*machine.LogsContainer{{Ids: ids}}}, nil
}

// Logs prints the events of a service, the only log that the lab has of it, and for what is no service the node's console.
func (s *machineServer) Logs(in *machine.LogsRequest, out grpc.ServerStreamingServer[common.Data]) error {
	var lines []string
	if svc := s.node.Services.Get(in.GetId()); svc != nil {
		for _, e := range svc.GetEvents().GetEvents() {
			lines = append(lines, e.GetTs().AsTime().Format(time.RFC3339)+" ["+e.GetState()+"] "+e.GetMsg())
		}
	} else if slices.Contains(machinedLogs, in.GetId()) {
		lines = s.node.ConsoleLines()
	} else {
		return status.Errorf(codes.Unknown, "log %q was not registered", in.GetId())
	}
	if n := int(in.GetTailLines()); n >= 0 && n < len(lines) {
		lines = lines[len(lines)-n:]
	}
	for _, line := range lines {
		if err := out.Send(&common.Data{Bytes: []byte(line + "\n")}); err != nil {
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
	names := s.node.ImageNames()
	if in.GetNamespace() == common.ContainerdNamespace_NS_SYSTEM {
		names = s.node.ServiceImages()
	}
	for _, name := range names {
		digest := "sha256:" + imageDigest(name)
		repository := name
		if i := strings.LastIndex(name, ":"); i > strings.LastIndex(name, "/") {
			repository = name[:i]
		}
		for _, known := range []string{name, repository + "@" + digest} {
			err := out.Send(&machine.ImageListResponse{
				Name: known, Digest: digest, Size: imageSize, CreatedAt: timestamppb.New(s.node.Started),
			})
			if err != nil {
				return err // the caller's own stream
			}
		}
	}

	return nil
}

// imageSize is what every image counts, in bytes: the lab holds none.
const imageSize = 50 << 20

func imageDigest(name string) string {
	sum := sha256.Sum256([]byte(name))

	return hex.EncodeToString(sum[:])
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
