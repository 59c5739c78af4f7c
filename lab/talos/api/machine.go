// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package api

import (
	"context"
	"fmt"
	"maps"
	"math"
	"runtime"
	"strings"
	"time"

	clientconfig "github.com/siderolabs/talos/pkg/machinery/client/config"
	"github.com/siderolabs/talos/pkg/machinery/config/generate/secrets"
	"github.com/siderolabs/talos/pkg/machinery/role"

	"github.com/talos-proxmox/talos-proxmox/lab/talos/disks"
	"github.com/talos-proxmox/talos-proxmox/lab/talos/machineconfig"

	"github.com/siderolabs/talos/pkg/machinery/api/machine"
	timeapi "github.com/siderolabs/talos/pkg/machinery/api/time"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/emptypb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/talos-proxmox/talos-proxmox/lab/talos/events"
	"github.com/talos-proxmox/talos-proxmox/lab/talos/node"
)

// kernelReserveMiB is what the kernel keeps of the machine's memory for itself.
const kernelReserveMiB = 110

// machineServer serves the Talos API of a configured node.
type machineServer struct {
	machine.UnimplementedMachineServiceServer
	node *node.Node
}

func versionResponse(n *node.Node, configured bool) *machine.VersionResponse {
	v := &machine.Version{
		Version: &machine.VersionInfo{
			Tag: n.Image.Talos, Sha: "00000000", Built: "", GoVersion: runtime.Version(),
			Os: "linux", Arch: n.Image.Arch,
		},
		Platform: &machine.PlatformInfo{Name: n.Image.Platform, Mode: n.RunMode().String()},
	}
	if configured {
		v.Features = &machine.FeaturesInfo{Rbac: true}
	}

	return &machine.VersionResponse{Messages: []*machine.Version{v}}
}

// Version tells which Talos runs.
func (s *machineServer) Version(context.Context, *emptypb.Empty) (*machine.VersionResponse, error) {
	return versionResponse(s.node, true), nil
}

// Hostname tells the node's name.
func (s *machineServer) Hostname(context.Context, *emptypb.Empty) (*machine.HostnameResponse, error) {
	return &machine.HostnameResponse{Messages: []*machine.Hostname{{Hostname: s.node.Hostname()}}}, nil
}

// Memory tells the machine's memory in KiB.
func (s *machineServer) Memory(context.Context, *emptypb.Empty) (*machine.MemoryResponse, error) {
	total := uint64(max(s.node.VM.MemoryMiB-kernelReserveMiB, 0)) * 1024 // never negative

	return &machine.MemoryResponse{Messages: []*machine.Memory{{Meminfo: &machine.MemInfo{
		Memtotal: total, Memavailable: total / 2, Memfree: total / 3,
	}}}}, nil
}

// SystemStat tells when the node booted.
func (s *machineServer) SystemStat(context.Context, *emptypb.Empty) (*machine.SystemStatResponse, error) {
	stat := &machine.SystemStat{
		BootTime: uint64(s.node.Started.Unix()), CpuTotal: &machine.CPUStat{}, // after 1970
	}
	for range s.node.VM.Cores {
		stat.Cpu = append(stat.Cpu, &machine.CPUStat{})
	}

	return &machine.SystemStatResponse{Messages: []*machine.SystemStat{stat}}, nil
}

// Mounts lists the partitions that are mounted.
func (s *machineServer) Mounts(context.Context, *emptypb.Empty) (*machine.MountsResponse, error) {
	reply := &machine.Mounts{}
	if d := s.node.Disk; d != nil {
		size := uint64(max(d.Disk.Size-node.EphemeralOverhead, 0)) // never negative
		reply.Stats = append(reply.Stats, &machine.MountStat{
			Filesystem: "EPHEMERAL", Size: size, Available: size / 10 * 9, MountedOn: "/var",
		})
	}

	return &machine.MountsResponse{Messages: []*machine.Mounts{reply}}, nil
}

// ServiceList lists the node's services.
func (s *machineServer) ServiceList(context.Context, *emptypb.Empty) (*machine.ServiceListResponse, error) {
	return &machine.ServiceListResponse{
		Messages: []*machine.ServiceList{{Services: s.node.Services.List()}},
	}, nil
}

// apiControlled returns the services that an administrator may start, stop and restart.
func apiControlled(id string) bool {
	return id == "kubelet" || strings.HasPrefix(id, "ext-")
}

func (s *machineServer) checkService(id, verb string) error {
	switch {
	case s.node.Services.Get(id) == nil:
		return status.Errorf(codes.Unknown, "service %q not defined", id)
	case !apiControlled(id) && !(id == node.ServiceEtcd && verb != "stop"):
		return status.Errorf(codes.Unknown, "service %q doesn't support %s operation via API", id, verb)
	}

	return nil
}

// ServiceStart starts a service.
func (s *machineServer) ServiceStart(
	_ context.Context, in *machine.ServiceStartRequest,
) (*machine.ServiceStartResponse, error) {
	if err := s.checkService(in.GetId(), "start"); err != nil {
		return nil, err
	}
	if in.GetId() != node.ServiceEtcd { // which starts by itself
		s.node.Services.Set(in.GetId(), events.StateRunning, "Health check successful", true)
	}

	return &machine.ServiceStartResponse{Messages: []*machine.ServiceStart{{
		Resp: "Service \"" + in.GetId() + "\" started",
	}}}, nil
}

// ServiceStop stops a service.
func (s *machineServer) ServiceStop(
	_ context.Context, in *machine.ServiceStopRequest,
) (*machine.ServiceStopResponse, error) {
	if err := s.checkService(in.GetId(), "stop"); err != nil {
		return nil, err
	}
	s.node.Services.Set(in.GetId(), events.StateFinished, "Service finished successfully", false)

	return &machine.ServiceStopResponse{Messages: []*machine.ServiceStop{{
		Resp: "Service \"" + in.GetId() + "\" stopped",
	}}}, nil
}

// ServiceRestart restarts a service.
func (s *machineServer) ServiceRestart(
	_ context.Context, in *machine.ServiceRestartRequest,
) (*machine.ServiceRestartResponse, error) {
	if err := s.checkService(in.GetId(), "restart"); err != nil {
		return nil, err
	}
	s.node.Services.Set(in.GetId(), events.StatePreparing, "Running pre state", false)
	s.node.Services.Set(in.GetId(), events.StateRunning, "Health check successful", true)

	return &machine.ServiceRestartResponse{Messages: []*machine.ServiceRestart{{
		Resp: "Service \"" + in.GetId() + "\" restarted",
	}}}, nil
}

func registerTime(s *grpc.Server, n *node.Node) {
	timeapi.RegisterTimeServiceServer(s, &timeServer{node: n})
}

type timeServer struct {
	timeapi.UnimplementedTimeServiceServer
	node *node.Node
}

// Time tells the node's time.
func (s *timeServer) Time(context.Context, *emptypb.Empty) (*timeapi.TimeResponse, error) {
	now := timestamppb.New(time.Now())
	local := timestamppb.New(time.Now().Add(s.node.Skew()))

	return &timeapi.TimeResponse{Messages: []*timeapi.Time{{
		Server: "time.cloudflare.com", Localtime: local, Remotetime: now,
	}}}, nil
}

// MetaWrite keeps a value in META.
func (s *machineServer) MetaWrite(_ context.Context, in *machine.MetaWriteRequest) (*machine.MetaWriteResponse, error) {
	if in.GetKey() > math.MaxUint8 {
		return nil, status.Error(codes.InvalidArgument, "key must be a uint8")
	}
	if s.node.Disk == nil {
		return nil, status.Error(codes.FailedPrecondition, "META is not available")
	}
	err := s.node.Disk.Update(func(d *disks.Installation) {
		d.Meta = maps.Clone(d.Meta)
		if d.Meta == nil {
			d.Meta = map[uint8]string{}
		}
		d.Meta[uint8(in.GetKey())] = string(in.GetValue())
	})
	if err != nil {
		return nil, err
	}

	return &machine.MetaWriteResponse{Messages: []*machine.MetaWrite{{}}}, nil
}

// MetaDelete removes a value from META.
func (s *machineServer) MetaDelete(_ context.Context, in *machine.MetaDeleteRequest) (*machine.MetaDeleteResponse, error) {
	if in.GetKey() > math.MaxUint8 {
		return nil, status.Error(codes.InvalidArgument, "key must be a uint8")
	}
	key := uint8(in.GetKey())
	if s.node.Disk == nil || s.node.Disk.Read().Meta[key] == "" {
		return nil, status.Error(codes.NotFound, "meta key not found")
	}
	err := s.node.Disk.Update(func(d *disks.Installation) {
		d.Meta = maps.Clone(d.Meta)
		delete(d.Meta, key)
	})
	if err != nil {
		return nil, err
	}

	return &machine.MetaDeleteResponse{Messages: []*machine.MetaDelete{{}}}, nil
}

// GenerateClientConfiguration issues a client's certificate from the operating system's authority.
func (s *machineServer) GenerateClientConfiguration(
	_ context.Context, in *machine.GenerateClientConfigurationRequest,
) (*machine.GenerateClientConfigurationResponse, error) {
	cfg := s.node.Config()
	if !machineconfig.IsControlPlane(cfg) {
		return nil, status.Error(codes.FailedPrecondition,
			"client configuration (talosconfig) can't be generated on worker nodes")
	}
	lifetime := in.GetCrtTtl().AsDuration()
	if lifetime <= 0 {
		return nil, status.Error(codes.InvalidArgument, "crt_ttl should be positive")
	}
	roles, unknown := role.Parse(in.GetRoles())
	if len(unknown) > 0 {
		return nil, status.Errorf(codes.InvalidArgument, "invalid roles: %s", strings.Join(unknown, ", "))
	}
	ca := cfg.Machine().Security().IssuingCA()
	pair, err := secrets.NewAdminCertificateAndKey(time.Now(), ca, roles, lifetime)
	if err != nil {
		return nil, fmt.Errorf("failed to generate client certificate: %w", err)
	}
	client := clientconfig.NewConfig(machineconfig.ClusterName(cfg), []string{machineconfig.Endpoint(cfg).Hostname()}, ca.Crt, pair)
	content, err := client.Bytes()
	if err != nil {
		return nil, fmt.Errorf("failed to marshal config: %w", err)
	}

	return &machine.GenerateClientConfigurationResponse{Messages: []*machine.GenerateClientConfiguration{{
		Ca: ca.Crt, Crt: pair.Crt, Key: pair.Key, Talosconfig: content,
	}}}, nil
}
