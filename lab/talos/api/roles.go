// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package api

import (
	"context"

	"github.com/siderolabs/talos/pkg/machinery/constants"
	"github.com/siderolabs/talos/pkg/machinery/role"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"

	"github.com/talos-proxmox/talos-proxmox/lab/talos/machineconfig"
)

type rolesKey struct{}

// callerRoles returns the roles of whoever called.
func callerRoles(ctx context.Context) role.Set {
	if set, ok := ctx.Value(rolesKey{}).(role.Set); ok {
		return set
	}

	return role.Zero
}

// withRoles reads the caller's roles from its certificate, or from the metadata when the certificate
// is that of another node that passes a call on.
func withRoles(ctx context.Context, maintenance bool) context.Context {
	if maintenance {
		return context.WithValue(ctx, rolesKey{}, role.MakeSet(role.Reader))
	}

	p, ok := peer.FromContext(ctx)
	if !ok {
		return ctx
	}
	info, ok := p.AuthInfo.(credentials.TLSInfo)
	if !ok || len(info.State.PeerCertificates) == 0 {
		return ctx
	}

	set, _ := role.Parse(info.State.PeerCertificates[0].Subject.Organization)
	if set.Includes(role.Impersonator) {
		if md, ok := metadata.FromIncomingContext(ctx); ok {
			set, _ = role.Parse(md.Get(constants.APIAuthzRoleMetadataKey))
		}
	}

	return context.WithValue(ctx, rolesKey{}, set)
}

// allowed tells who may call a method: administrators everything, the others what reading, operating
// or backing up needs.
func allowed(method string) role.Set {
	switch method {
	case "/machine.MachineService/EtcdAlarmList", "/machine.MachineService/EtcdMemberList",
		"/machine.MachineService/EtcdStatus":
		return role.MakeSet(role.Admin, role.Operator, role.Reader, role.EtcdBackup)
	case "/machine.MachineService/EtcdSnapshot":
		return role.MakeSet(role.Admin, role.Operator, role.EtcdBackup)
	case "/machine.ImageService/Pull", "/machine.MachineService/EtcdAlarmDisarm", "/machine.MachineService/EtcdDefragment",
		"/machine.MachineService/ImagePull", "/machine.MachineService/PacketCapture",
		"/machine.MachineService/Reboot", "/machine.MachineService/Restart",
		"/machine.MachineService/ServiceRestart", "/machine.MachineService/ServiceStart",
		"/machine.MachineService/ServiceStop", "/machine.MachineService/Shutdown":
		return role.MakeSet(role.Admin, role.Operator)
	case "/cosi.resource.State/Get", "/cosi.resource.State/List", "/cosi.resource.State/Watch",
		"/storage.StorageService/Disks", "/time.TimeService/Time", "/time.TimeService/TimeCheck",
		"/machine.MachineService/CPUInfo", "/machine.MachineService/Containers",
		"/machine.MachineService/DiskStats", "/machine.MachineService/DiskUsage",
		"/machine.MachineService/Dmesg", "/machine.MachineService/Events",
		"/machine.MachineService/Hostname", "/machine.MachineService/ImageList",
		"/machine.MachineService/List", "/machine.MachineService/LoadAvg",
		"/machine.MachineService/Logs", "/machine.MachineService/LogsContainers",
		"/machine.MachineService/Memory", "/machine.MachineService/Mounts",
		"/machine.MachineService/NetworkDeviceStats", "/machine.MachineService/Netstat",
		"/machine.MachineService/Processes", "/machine.MachineService/ServiceList",
		"/machine.MachineService/Stats", "/machine.MachineService/SystemStat",
		"/machine.MachineService/Version",
		"/machine.ImageService/List", "/machine.ImageService/Verify":
		return role.MakeSet(role.Admin, role.Operator, role.Reader)
	}

	return role.MakeSet(role.Admin)
}

// authorize refuses callers without a fitting role. In maintenance mode each method decides itself before
// 1.13; since then everybody reads there, and may bring the first configuration.
func authorize(ctx context.Context, method string, maintenance bool, talos string) error {
	if allowed(method).IncludesAny(callerRoles(ctx)) {
		return nil
	}
	if maintenance && (!machineconfig.AtLeast(talos, 1, 13) || method == "/machine.MachineService/ApplyConfiguration") {
		return nil
	}

	return status.Error(codes.PermissionDenied, "not authorized")
}
