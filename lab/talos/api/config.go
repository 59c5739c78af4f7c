// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package api

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/siderolabs/talos/pkg/machinery/api/machine"
	"github.com/siderolabs/talos/pkg/machinery/config/configdiff"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/talos-proxmox/talos-proxmox/lab/talos/machineconfig"
)

// tryTimeout is how long a configuration applied with --mode=try lives.
const tryTimeout = time.Minute

// ApplyConfiguration changes the node's configuration, with a reboot where that is needed.
func (s *machineServer) ApplyConfiguration(
	ctx context.Context, in *machine.ApplyConfigurationRequest,
) (*machine.ApplyConfigurationResponse, error) {
	attrs := s.node.Attrs()
	attrs["mode"], attrs["dryRun"] = in.GetMode().String(), fmt.Sprint(in.GetDryRun())
	end := s.node.VM.Trace.Begin("talos.apply", s.node.Object(), attrs)
	reply, err := s.applyConfiguration(ctx, in)
	if err == nil {
		attrs["applied"] = reply.GetMode().String()
	}
	end(err)
	if err != nil {
		return nil, err
	}

	return &machine.ApplyConfigurationResponse{Messages: []*machine.ApplyConfiguration{reply}}, nil
}

func (s *machineServer) applyConfiguration(
	ctx context.Context, in *machine.ApplyConfigurationRequest,
) (*machine.ApplyConfiguration, error) {
	if in.GetMode() != machine.ApplyConfigurationRequest_TRY {
		s.node.CancelTry()
	}
	cfg, err := machineconfig.Load(in.GetData(), s.node.Image.Talos)
	if err != nil {
		return nil, machineconfig.Invalid(err)
	}
	if cfg.RawV1Alpha1() == nil {
		return nil, machineconfig.Invalid(errors.New("the applied machine configuration doesn't contain v1alpha1 config, " +
			"did you mean to patch the machine config instead?"))
	}
	warnings, err, runtimeErr := s.node.Validate(ctx, cfg, s.node.RunMode())
	if err = errors.Join(err, runtimeErr); err != nil {
		return nil, machineconfig.Invalid(err)
	}

	mode, details, err := chooseMode(in.GetMode(), machineconfig.CheckLive(s.node.Config(), cfg))
	if err != nil {
		return nil, err
	}
	if in.GetDryRun() {
		diff, err := configdiff.DiffConfigs(s.node.Config(), cfg)
		if err != nil {
			return nil, fmt.Errorf("failed to generate diff: %w", err)
		}
		if diff == "" {
			diff = "No changes."
		}
		head, _, _ := cutLine(details)

		return &machine.ApplyConfiguration{
			Mode:        mode,
			ModeDetails: "Dry run summary:\n" + head + " (skipped in dry-run).\nConfig diff:\n\n" + diff,
		}, nil
	}

	if mode == machine.ApplyConfigurationRequest_TRY {
		timeout := tryTimeout
		if in.GetTryModeTimeout() != nil {
			timeout = in.GetTryModeTimeout().AsDuration()
		}
		details += "\nThe config is applied in 'try' mode and will be automatically reverted back in " + timeout.String()
		s.node.TryConfig(cfg, timeout)

		return &machine.ApplyConfiguration{Mode: mode, Warnings: warnings, ModeDetails: details}, nil
	}
	if err := s.node.SaveConfig(cfg, mode); err != nil {
		return nil, err
	}

	return &machine.ApplyConfiguration{Mode: mode, Warnings: warnings, ModeDetails: details}, nil
}

// cutLine splits off what follows the first colon: the reason for a reboot.
func cutLine(s string) (head, rest string, found bool) {
	for i := range len(s) {
		if s[i] == ':' {
			return s[:i], s[i+1:], true
		}
	}

	return s, "", false
}

// chooseMode decides how a configuration is applied; obstacle is why it cannot be at once.
func chooseMode(
	mode machine.ApplyConfigurationRequest_Mode, obstacle error,
) (machine.ApplyConfigurationRequest_Mode, string, error) {
	const (
		live   = "Applied configuration without a reboot"
		reboot = "Applied configuration with a reboot"
	)

	switch mode {
	case machine.ApplyConfigurationRequest_TRY, machine.ApplyConfigurationRequest_NO_REBOOT:
		if obstacle != nil {
			return mode, "", machineconfig.Invalid(obstacle)
		}

		return mode, live, nil
	case machine.ApplyConfigurationRequest_STAGED:
		return mode, "Staged configuration to be applied after the next reboot", nil
	case machine.ApplyConfigurationRequest_AUTO:
		if obstacle != nil {
			return machine.ApplyConfigurationRequest_REBOOT, reboot + ": " + obstacle.Error(), nil //nolint:nilerr // it is no error then
		}

		return machine.ApplyConfigurationRequest_NO_REBOOT, live, nil
	case machine.ApplyConfigurationRequest_REBOOT:
		return mode, reboot, nil
	}

	return mode, "", status.Errorf(codes.Unknown, "incorrect mode '%s' specified for the apply config call", mode)
}
