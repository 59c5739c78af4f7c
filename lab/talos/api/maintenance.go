// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package api

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/siderolabs/talos/pkg/machinery/api/machine"
	"github.com/siderolabs/talos/pkg/machinery/api/storage"
	"github.com/siderolabs/talos/pkg/machinery/config"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/talos-proxmox/talos-proxmox/lab/talos/machineconfig"
	"github.com/talos-proxmox/talos-proxmox/lab/talos/node"
	"github.com/talos-proxmox/talos-proxmox/lab/talos/nodepki"
)

// maintenanceServer serves the Talos API of a node without a configuration.
type maintenanceServer struct {
	machine.UnimplementedMachineServiceServer
	node *node.Node
	got  chan<- config.Provider
}

// ApplyConfiguration takes the first valid configuration.
func (s *maintenanceServer) ApplyConfiguration(
	ctx context.Context, in *machine.ApplyConfigurationRequest,
) (*machine.ApplyConfigurationResponse, error) {
	switch in.GetMode() {
	case machine.ApplyConfigurationRequest_TRY, machine.ApplyConfigurationRequest_REBOOT,
		machine.ApplyConfigurationRequest_AUTO:
	default:
		if s.is113() {
			break
		}
		mode := strings.ReplaceAll(strings.ToLower(in.GetMode().String()), "_", "-")

		return nil, status.Errorf(codes.Unimplemented,
			"apply configuration --mode='%s' is not supported in maintenance mode", mode)
	}

	end := s.node.VM.Trace.Begin("talos.apply", s.node.Object(), map[string]string{
		"mode": in.GetMode().String(), "maintenance": "true", "dryRun": fmt.Sprint(in.GetDryRun()),
	})
	reply, err := s.apply(ctx, in)
	end(err)

	return reply, err
}

func (s *maintenanceServer) apply(
	ctx context.Context, in *machine.ApplyConfigurationRequest,
) (*machine.ApplyConfigurationResponse, error) {
	cfg, err := machineconfig.Load(in.GetData(), s.node.Image.Talos)
	if err != nil {
		if s.is113() {
			return nil, machineconfig.Invalid(err)
		}

		return nil, fmt.Errorf("failed to parse config: %w", err)
	}
	warnings, err, runtimeErr := s.node.Validate(ctx, cfg, s.node.RunMode())
	if err := errors.Join(err, runtimeErr); err != nil && s.is113() {
		return nil, machineconfig.Invalid(err)
	}
	if err != nil {
		return nil, status.Errorf(codes.InvalidArgument, "configuration validation failed: %s", err)
	}
	if runtimeErr != nil {
		return nil, status.Errorf(codes.InvalidArgument, "runtime configuration validation failed: %s", runtimeErr)
	}

	reply := &machine.ApplyConfiguration{Warnings: slices.Clone(warnings)}
	if s.is113() {
		reply.Mode, reply.ModeDetails = machine.ApplyConfigurationRequest_NO_REBOOT, "Applied configuration without a reboot"
		if in.GetMode() == machine.ApplyConfigurationRequest_STAGED {
			reply.Mode = machine.ApplyConfigurationRequest_STAGED
			reply.ModeDetails = "Staged configuration to be applied after the next reboot"
		}
	}
	switch {
	case in.GetDryRun() && s.is113():
		reply.ModeDetails = "Dry run summary:\n" + reply.GetModeDetails() + " (skipped in dry-run)."
	case in.GetDryRun():
		reply.ModeDetails = "Dry run summary:\nNode is running in maintenance mode and does not have a config yet."
	case cfg.RawV1Alpha1() == nil: // a part that concerns no machine: maintenance goes on with it
		s.node.SetPartial(cfg)
	default:
		select {
		case s.got <- cfg:
		default:
			return nil, status.Error(codes.Unavailable, "a configuration was already accepted")
		}
	}

	return &machine.ApplyConfigurationResponse{Messages: []*machine.ApplyConfiguration{reply}}, nil
}

// is113 reports whether it is Talos 1.13 or newer, whose API is the same one in maintenance mode.
func (s *maintenanceServer) is113() bool { return machineconfig.AtLeast(s.node.Image.Talos, 1, 13) }

// Version answers administrators, of whom maintenance mode knows none, until 1.13 made it readable.
func (s *maintenanceServer) Version(context.Context, *emptypb.Empty) (*machine.VersionResponse, error) {
	if !s.is113() {
		return nil, s.refused()
	}

	return versionResponse(s.node, false), nil
}

// refused returns the answer to what maintenance mode does not do; 1.13 and newer refuse it by the caller's role.
func (s *maintenanceServer) refused() error {
	return status.Error(codes.Unimplemented, "API is not implemented in maintenance mode")
}

// Upgrade returns refused without a role.
func (s *maintenanceServer) Upgrade(context.Context, *machine.UpgradeRequest) (*machine.UpgradeResponse, error) {
	return nil, s.refused()
}

// Reset returns refused without a role.
func (s *maintenanceServer) Reset(context.Context, *machine.ResetRequest) (*machine.ResetResponse, error) {
	return nil, s.refused()
}

// MetaWrite returns refused without a role.
func (s *maintenanceServer) MetaWrite(context.Context, *machine.MetaWriteRequest) (*machine.MetaWriteResponse, error) {
	return nil, s.refused()
}

// MetaDelete returns refused without a role.
func (s *maintenanceServer) MetaDelete(
	context.Context, *machine.MetaDeleteRequest,
) (*machine.MetaDeleteResponse, error) {
	return nil, s.refused()
}

// GenerateClientConfiguration returns refused.
func (s *maintenanceServer) GenerateClientConfiguration(
	context.Context, *machine.GenerateClientConfigurationRequest,
) (*machine.GenerateClientConfigurationResponse, error) {
	return nil, status.Error(codes.Unimplemented,
		"client configuration (talosconfig) can't be generated in the maintenance mode")
}

// ServeMaintenance serves the API of a node without a configuration until stop is called, and sends on got the
// configuration that it was given.
func (Server) ServeMaintenance(n *node.Node, got chan<- config.Provider) (stop func(), err error) {
	from, to := n.Validity()
	cert, err := nodepki.SelfSigned(n.Book.Wanted(), from, to)
	if err != nil {
		return nil, err
	}

	api := newServer(n, &tls.Config{
		Certificates: []tls.Certificate{cert}, MinVersion: tls.VersionTLS13, NextProtos: []string{"h2"},
	}, true)
	s := &maintenanceServer{node: n, got: got}
	machine.RegisterMachineServiceServer(api, s)
	if s.is113() {
		machine.RegisterLifecycleServiceServer(api, machine.UnimplementedLifecycleServiceServer{}) // refused by role
		machine.RegisterImageServiceServer(api, &imageServer{node: n})
	}
	storage.RegisterStorageServiceServer(api, &storageServer{node: n, maintenance: true})
	registerState(api, n)

	return listenAPI(n, api), nil
}
